/* sources.c - a part of test_nlist.c: whatever finds the neighbours that a list is built from
   (brute force, pairs, each kind of grid and tree), the layouts of a list, and checks of its
   arrays.
   SPDX-License-Identifier: MIT OR Unlicense */

enum {
    BRUTE, PAIRS,
    GRID_SORT, GRID_MORTON, GRID_COUNT, GRID_BARE, GRID_FIXED, GRID_LIST, GRID_PACKED, GRID_TIGHT,
        GRID_SPLIT, GRID_HASHED,
    TREE_POINTS, TREE_FAT_POINTS, TREE_SPHERES, TREE_STALE,
    SOURCES
};

static const char *const source_names[SOURCES] = {
    "brute force", "pairs", "grid SORT", "grid SORT, Morton", "grid COUNT",
        "grid COUNT without records", "grid FIXED", "grid LIST",
    "grid LIST_PACKED", "grid TIGHT", "grid SORT, split cells", "grid unbounded", "tree of points",
        "tree of points with a radius",
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

static int axes_repeat(const oracle_scene *s)
{
    return s->periodic[0] | s->periodic[1] | s->periodic[2];
}

/* A hashed grid has no box that could repeat. */
static int possible(const oracle_scene *s, int source)
{
    return source != GRID_HASHED || !axes_repeat(s);
}

static void make_grid(feeder *f, const oracle_scene *s)
{
    static const ugrid_method methods[] = {UGRID_SORT, UGRID_SORT, UGRID_COUNT, UGRID_COUNT,
        UGRID_FIXED, UGRID_LIST, UGRID_LIST_PACKED, UGRID_COUNT, UGRID_SORT, UGRID_LIST};
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
    d.builder = (lbvh_builder)roll(3);
    d.kind = f->source == TREE_SPHERES || f->source == TREE_STALE ? LBVH_SPHERES : LBVH_POINTS;
    d.radius = f->source == TREE_FAT_POINTS ? s->radius / 2 + s->radii_max : 0;
    if (d.kind == LBVH_POINTS) {
        CHECK(lbvh_build(&f->tree, &d, s->pos, s->stride, s->n) == LBVH_OK);
        if (roll(2)) CHECK(lbvh_optimize(&f->tree, NULL) == LBVH_OK);
        return;
    }
    f->spheres = oracle_spheres(s);
    /* centres and radii of some other day */
    for (i = 0; i < s->n * (s->dim + 1) && f->source == TREE_STALE; i++)
        f->spheres[i] = (i + 1) % (s->dim + 1) ? f->spheres[i] + s->cell * between(-1, 1) :
            s->cell * between(0, 1);
    CHECK(lbvh_build(&f->tree, &d, f->spheres, 0, s->n) == LBVH_OK);
    if (roll(2)) CHECK(lbvh_optimize(&f->tree, NULL) == LBVH_OK);
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

static nlist_result feed(nlist *list, const nlist_desc *desc, const feeder *f,
    const oracle_scene *s)
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
   ---------------------------------------------------------------------------------------------- */

typedef struct variant { nlist_layout layout; int32_t width; } variant;

enum { AS_WIDE_AS_NEEDED = -1, POWER_OF_TWO = -2 /* and at least that wide */ };

static const variant variants[] = {
    {NLIST_COMPACT, 0}, {NLIST_STATIC, AS_WIDE_AS_NEEDED}, {NLIST_DYNAMIC, 0}, {NLIST_HYBRID, 0},
    {NLIST_HYBRID, 1}, {NLIST_HYBRID, 2}, {NLIST_HYBRID, 5}, {NLIST_HYBRID, 200},
    {NLIST_STATIC, 300},
};

static const char *const layout_names[] = {"COMPACT", "STATIC", "DYNAMIC", "HYBRID"};

static struct { const oracle_scene *scene; const nlist_desc *desc; int source; } now;

static void describe_case(void)
{
    const oracle_scene *s = now.scene;
    const nlist_desc *d = now.desc;
    if (s)
        print_error("  %s, n %d, dim %d, periodic %d %d %d, options %d, cells %d %d %d\n",
            oracle_input_name(s->input), (int)s->n, s->dim, s->periodic[0], s->periodic[1],
            s->periodic[2], s->options, s->cells[0], s->cells[1], s->cells[2]);
    if (s)
        print_error("  radius %.9g, skin %.9g, radii up to %.9g\n", (double)s->radius,
            (double)s->skin, (double)s->radii_max);
    if (d)
        print_error("  %s, layout %s, width %d, half %d, history %d\n", source_names[now.source],
            layout_names[d->layout], (int)d->width, (int)d->half, (int)d->history);
}

/* The desc's layout, for which the fullest row must be known. A width of 0 says default to the
   header; in HYBRID it is one. */
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
   ---------------------------------------------------------------------------------------------- */

static void check_compact(const nlist *list, const nlist_rows *rows)
{
    int32_t i;
    CHECK(rows->start && !rows->slot && !rows->own && !rows->link && !rows->head &&
        !rows->touched && rows->width == 0);
    CHECK(rows->start[0] == 0 && rows->start[list->n] == list->total &&
        rows->entries == list->total);
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
    if (layout == NLIST_STATIC)
        CHECK(!rows->head && !rows->partner && rows->entries == 0 && rows->capacity == 0);
    if (layout == NLIST_DYNAMIC) CHECK(rows->width == 0 && !rows->slot);
    if (layout == NLIST_DYNAMIC || layout == NLIST_HYBRID) check_chains(list, rows);
    if (layout == NLIST_DYNAMIC) check_touched(list, rows);
    CHECK(!rows->history == (list->desc.history == 0 || oracle_entries(list) == 0) ||
        list->desc.history);
}

/* Everything about a list that was just built. */
static void check_list(const nlist *list, const oracle_scene *s, const int32_t *name)
{
    CHECK_FINE(oracle_check_rows(s, list, name));
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
    check_arrays(list);
}
