/* trees.h - the search behind nearfield.neighbor_list where cells would be slow: over trees.
   SPDX-License-Identifier: MIT OR Unlicense

   Cells are as wide as the largest cutoff, and there are no more of them than points. One large
   cutoff among small ones, a point far from all others or a chain along a diagonal put most points
   into a few cells, and the search becomes O(n^2). A tree of lbvh.h has no such case. It also finds
   the k nearest without a cutoff, and neighbours of points that are not among those searched.

       places    periodic axes: a point is put into the cell, and its wrap W remembered
       trees     one over all points of a system; with cutoffs between kinds one for each kind. With
                 radii it holds spheres, and a row reaches as far as its own radius
       row       a walk for each image of the cell that the row can reach; what it finds is tested
                 by the formula of nlist_i_offset, as in cells: the same pairs, the same bits
       order     a heap keeps the first entries of a row, by distance or by id; then they are sorted

   O((n + rows) log n + entries log row). */

/* An entry of the row in progress. */
typedef struct nearfield_i_entry {
    nlist_real d2;
    int32_t j, shift[3];
} nearfield_i_entry;

/* Arrays of trees.block. */
enum {
    NEARFIELD_I_TREES,      /* lbvh [groups] */
    NEARFIELD_I_FIRSTS,     /* int32_t [groups + 1] where each begins in the next two */
    NEARFIELD_I_IDS,        /* int32_t [n] points by group */
    NEARFIELD_I_PLACES,     /* nlist_real [4 n] in the cell, and a radius */
    NEARFIELD_I_WRAPS,      /* int32_t [3 n] by id */
    NEARFIELD_I_ROW,        /* nearfield_i_entry: the row in progress */
    NEARFIELD_I_BEGINS,     /* int64_t [rows] where each begins in the two below */
    NEARFIELD_I_LENGTHS,    /* int32_t [rows] */
    NEARFIELD_I_PARTNERS,   /* int32_t [used] */
    NEARFIELD_I_SHIFTS,     /* int32_t [3 used] where an axis is periodic */
    NEARFIELD_I_COUNTS,     /* int32_t: points by cell; which points stay */
    NEARFIELD_I_BLOCKS
};

typedef struct nearfield_i_block { void *memory; size_t bytes; } nearfield_i_block;

typedef struct nearfield_i_trees {
    nearfield_i_block block[NEARFIELD_I_BLOCKS];
    nlist_desc desc;
    nlist_i_frame frame;    /* of the system in progress */
    nlist_i_extent extent;
    int32_t groups, planted;
    int thinned;            /* 1: not all points are in the trees */
    nlist_real largest;     /* of the radii */
    int repeats;            /* 1: an axis is periodic */
    int images;             /* 1: one of any system is: entries have shifts */
    int64_t count;          /* entries of the row in progress */
    int64_t keeps;          /* a row keeps so many, 0: all */
    int by_id;              /* 1: the first ones by id, 0: the nearest */
    int64_t used;           /* entries of all rows */
    int32_t longest;
} nearfield_i_trees;

/* A row: of a point, or of a query. */
typedef struct nearfield_i_row {
    nlist_real p[3];        /* as given */
    double at[3];           /* in the cell */
    int32_t wrap[3], id;    /* id: -1 for a query */
    nlist_real radius;
    int32_t kind;
    double gap2;            /* along the axes that are not periodic, to the nearest point */
    double slack;           /* by how much roundings can move a point in the cell */
} nearfield_i_row;

static nearfield_i_trees *nearfield_i_trees_of(nearfield_search *search);

/* Room for `count` elements in a block, which keeps what it has. Grows by half, or by what is left:
   at least by a sixteenth, so that all copies together are of the order of the array. */
static nlist_result nearfield_i_room(nearfield_search *search, int which, int64_t count,
                                     size_t size)
{
    nearfield_i_block *block = &nearfield_i_trees_of(search)->block[which];
    size_t const wanted = (size_t)(count > 0 ? count : 1) * size;
    size_t extra = block->bytes > 0 ? wanted / 2 : 0;
    void *memory;
    if (wanted <= block->bytes) return NLIST_OK;
    memory = nearfield_i_alloc(wanted + extra, search);
    while (!memory && extra > wanted / 16) {
        extra /= 2;
        memory = nearfield_i_alloc(wanted + extra, search);
    }
    if (!memory) return NLIST_OUT_OF_MEMORY;
    if (block->bytes > 0) memcpy(memory, block->memory, block->bytes);
    if (block->bytes > 0) nearfield_i_free(block->memory, block->bytes, search);
    block->memory = memory;
    block->bytes = wanted + extra;
    return NLIST_OK;
}

static lbvh *nearfield_i_tree(nearfield_i_trees *trees, int32_t group)
{
    return (lbvh *)trees->block[NEARFIELD_I_TREES].memory + group;
}

static int32_t *nearfield_i_ints(nearfield_i_trees *trees, int which)
{
    return (int32_t *)trees->block[which].memory;
}

/* Frees the trees of a system. */
static void nearfield_i_fell(nearfield_i_trees *trees)
{
    while (trees->planted > 0) lbvh_free(nearfield_i_tree(trees, --trees->planted));
}

static void nearfield_i_free_trees(nearfield_search *search)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    int k;
    nearfield_i_fell(trees);
    for (k = 0; k < NEARFIELD_I_BLOCKS; k++) {
        if (trees->block[k].memory)
            nearfield_i_free(trees->block[k].memory, trees->block[k].bytes, search);
        memset(&trees->block[k], 0, sizeof trees->block[k]);
    }
}

/* ---- a row: its first entries, in order ---- */

/* 1 if an entry comes before another. */
static int nearfield_i_before(int by_id, const nearfield_i_entry *a, const nearfield_i_entry *b)
{
    if (!by_id && a->d2 != b->d2) return a->d2 < b->d2;
    if (a->j != b->j) return a->j < b->j;
    return nlist_i_shift_before(a->shift, b->shift);
}

/* Entry k of a heap, whose first is the last one of all, sinks below those that come after it: the
   later child moves up, down to a leaf, and from there the entry climbs (Wegener 1993): it mostly
   belongs far down. */
static void nearfield_i_sink(nearfield_i_entry *row, int64_t k, int64_t count, int by_id)
{
    nearfield_i_entry const moving = row[k];
    int64_t const top = k;
    int64_t child;
    for (child = 2 * k + 1; child < count; child = 2 * k + 1) {
        if (child + 1 < count && nearfield_i_before(by_id, &row[child], &row[child + 1])) child++;
        row[k] = row[child];
        k = child;
    }
    for (; k > top && nearfield_i_before(by_id, &row[(k - 1) / 2], &moving); k = (k - 1) / 2)
        row[k] = row[(k - 1) / 2];
    row[k] = moving;
}

static void nearfield_i_heap(nearfield_i_entry *row, int64_t count, int by_id)
{
    int64_t k;
    for (k = count / 2; k-- > 0;) nearfield_i_sink(row, k, count, by_id);
}

/* Sorts a row: by insertion up to 12, else two halves that are merged. work: as many entries. (A
   heap, sorted in place, takes twice the time: its branches cannot be predicted.) */
static void nearfield_i_sort(nearfield_i_entry *row, nearfield_i_entry *work, int64_t count,
                             int by_id)
{
    int64_t const middle = count / 2;
    int64_t a = 0, b = middle, k;
    if (count <= 12) {
        for (k = 1; k < count; k++) {
            nearfield_i_entry const moving = row[k];
            for (a = k; a > 0 && nearfield_i_before(by_id, &moving, &row[a - 1]); a--)
                row[a] = row[a - 1];
            row[a] = moving;
        }
        return;
    }
    nearfield_i_sort(row, work, middle, by_id);
    nearfield_i_sort(row + middle, work + middle, count - middle, by_id);
    memcpy(work, row, (size_t)count * sizeof *row);
    for (k = 0; a < middle && b < count; k++) {
        int const second = nearfield_i_before(by_id, &work[b], &work[a]);
        row[k] = work[second ? b : a];
        b += second;
        a += !second;
    }
    memcpy(row + k, work + (a < middle ? a : b), (size_t)(count - k) * sizeof *row);
}

/* Adds an entry, or puts it into the place of the last one. */
static nlist_result nearfield_i_add(nearfield_search *search, const nearfield_i_entry *entry)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    nearfield_i_entry *row;
    if (trees->keeps == 0 || trees->count < trees->keeps) {
        nlist_result const result = nearfield_i_room(search, NEARFIELD_I_ROW, trees->count + 1,
                                                     sizeof *entry);
        if (result != NLIST_OK) return result;
        row = (nearfield_i_entry *)trees->block[NEARFIELD_I_ROW].memory;
        row[trees->count++] = *entry;
        if (trees->count == trees->keeps) nearfield_i_heap(row, trees->count, trees->by_id);
        return NLIST_OK;
    }
    row = (nearfield_i_entry *)trees->block[NEARFIELD_I_ROW].memory;
    if (!nearfield_i_before(trees->by_id, entry, &row[0])) return NLIST_OK;
    row[0] = *entry;
    nearfield_i_sink(row, 0, trees->count, trees->by_id);
    return NLIST_OK;
}

/* The row is found: it is put in order, and stored. */
static nlist_result nearfield_i_store_row(nearfield_search *search, int32_t number)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    nearfield_i_entry *row;
    int64_t const count = trees->count, end = trees->used + count;
    int32_t *partner, *shift;
    int64_t k;
    if (count >= 2147482624) return NLIST_OUT_OF_MEMORY;
    if (nearfield_i_room(search, NEARFIELD_I_PARTNERS, end, sizeof(int32_t)) != NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_SHIFTS, trees->images ? 3 * end : 0,
                         sizeof(int32_t)) != NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_ROW, 2 * count, sizeof *row) != NLIST_OK)
        return NLIST_OUT_OF_MEMORY;
    row = (nearfield_i_entry *)trees->block[NEARFIELD_I_ROW].memory;
    if (trees->keeps > 0 || search->sorted)
        nearfield_i_sort(row, row + count, count, trees->by_id);
    partner = nearfield_i_ints(trees, NEARFIELD_I_PARTNERS) + trees->used;
    shift = nearfield_i_ints(trees, NEARFIELD_I_SHIFTS) + 3 * trees->used * trees->images;
    for (k = 0; k < count; k++) {
        partner[k] = row[k].j;
        if (trees->images) memcpy(shift + 3 * k, row[k].shift, sizeof row[k].shift);
    }
    ((int64_t *)trees->block[NEARFIELD_I_BEGINS].memory)[number] = trees->used;
    nearfield_i_ints(trees, NEARFIELD_I_LENGTHS)[number] = (int32_t)count;
    if (count > trees->longest) trees->longest = (int32_t)count;
    trees->used = end;
    return NLIST_OK;
}

/* ---- places ---- */

/* The point with an id, as given. */
static void nearfield_i_load(const nearfield_search *search, int32_t i, nlist_real p[3])
{
    size_t const stride = search->stride ? (size_t)search->stride : 3 * sizeof(nlist_real);
    nlist_i_load(search->pos, stride, 3, i, p);
}

/* The extent of points first .. first + n - 1. */
static void nearfield_i_measure(const nearfield_search *search, const nlist_i_frame *frame,
                                nlist_i_extent *extent)
{
    nlist_real p[3];
    int32_t k;
    int a;
    memset(extent, 0, sizeof *extent);
    for (k = 0; k < frame->n; k++) {
        nearfield_i_load(search, frame->first + k, p);
        for (a = 0; a < 3; a++) {
            double const x = nlist_i_magnitude((double)p[a]);
            double const f = frame->periodic[a] ? 0 : nlist_i_fraction(frame, a, p);
            if (x > extent->most) extent->most = x;
            if (k == 0 || f < extent->low[a]) extent->low[a] = f;
            if (k == 0 || f > extent->high[a]) extent->high[a] = f;
        }
    }
}

/* Where a point is in the cell, and its wrap. Returns 0 where that is 2^28 or more. */
NLIST_FN int nearfield_i_into_cell(const nlist_i_frame *frame, const nlist_real p[3], double at[3],
                                   int32_t wrap[3])
{
    double whole[3];
    int a, b;
    for (b = 0; b < 3; b++) {
        at[b] = (double)p[b];
        wrap[b] = 0;
    }
    for (a = 0; a < 3; a++) {
        double const f = frame->periodic[a] ? nlist_i_fraction(frame, a, p) : 0;
        if (!(f > -NLIST_I_PERIODS && f < NLIST_I_PERIODS)) return 0;
        whole[a] = nlist_i_floor(f);
        for (b = 0; b < 3; b++) at[b] -= nlist_i_product(whole[a], frame->vector[a][b]);
    }
    for (b = 0; b < 3; b++) {
        double w = 0;
        for (a = 0; a < 3; a++) w += nlist_i_product(whole[a], frame->basis[a][b]);
        if (!(w > -NLIST_I_PERIODS && w < NLIST_I_PERIODS)) return 0;
        wrap[b] = (int32_t)w;
    }
    return 1;
}

/* The tree that a point is in: of its kind, or the one. -1: none. */
static int32_t nearfield_i_group(const nearfield_search *search, int32_t i)
{
    return search->between ? search->of[i] : 0;
}

/* Sorts the points of the system by group (by counts), and puts them into the cell. */
static nlist_result nearfield_i_place_all(nearfield_search *search)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const nlist_i_frame *frame = &trees->frame;
    int32_t *first = nearfield_i_ints(trees, NEARFIELD_I_FIRSTS);
    int32_t *id = nearfield_i_ints(trees, NEARFIELD_I_IDS);
    int32_t *wrap = nearfield_i_ints(trees, NEARFIELD_I_WRAPS);
    nlist_real *at = (nlist_real *)trees->block[NEARFIELD_I_PLACES].memory;
    int32_t g, k;
    memset(first, 0, sizeof *first * ((size_t)trees->groups + 2));
    for (k = 0; k < frame->n; k++) first[nearfield_i_group(search, frame->first + k) + 2]++;
    first[1] = 0;       /* those of no group */
    for (g = 2; g <= trees->groups + 1; g++) first[g] += first[g - 1];
    for (k = 0; k < frame->n; k++) {
        int32_t const i = frame->first + k, group = nearfield_i_group(search, i);
        int32_t place[3], to;
        nlist_real p[3];
        double in_cell[3];
        int b;
        nearfield_i_load(search, i, p);
        if (!nearfield_i_into_cell(frame, p, in_cell, place)) return NLIST_TOO_MANY_IMAGES;
        for (b = 0; b < 3; b++) wrap[3 * (size_t)k + (size_t)b] = place[b];
        if (group < 0) continue;
        to = first[group + 1]++;
        id[to] = i;
        for (b = 0; b < 3; b++) at[4 * (size_t)to + (size_t)b] = (nlist_real)in_cell[b];
        at[4 * (size_t)to + 3] = search->radii ? search->radii[i] : 0;
        if (at[4 * (size_t)to + 3] > trees->largest) trees->largest = at[4 * (size_t)to + 3];
    }
    return NLIST_OK;
}

/* A tree over n places. */
static nlist_result nearfield_i_plant_one(nearfield_search *search, lbvh *tree,
                                          const nlist_real *at, int32_t n)
{
    lbvh_desc desc;
    lbvh_result result;
    memset(&desc, 0, sizeof desc);
    desc.kind = search->radii ? LBVH_SPHERES : LBVH_POINTS;
    desc.allocator.alloc = nearfield_i_alloc;
    desc.allocator.free = nearfield_i_free;
    desc.allocator.user = search;
    result = lbvh_build(tree, &desc, at, 4 * sizeof *at, n);
    if (result == LBVH_OUT_OF_MEMORY) return NLIST_OUT_OF_MEMORY;
    return result == LBVH_OK ? NLIST_OK : NLIST_NOT_FINITE;
}

/* Of points at one place a row that keeps k entries lists at most k, those of the lowest ids: the
   others (and one, since a point is not in its own row) leave the arrays. Points at one place have
   one code, and follow each other in the tree by id. Returns how many stay. */
static int32_t nearfield_i_thin(nearfield_search *search, const lbvh *tree, nlist_real *at,
                                int32_t *id, int32_t *stays)
{
    int64_t const keeps = nearfield_i_trees_of(search)->keeps;
    nlist_real p[3] = {0, 0, 0}, q[3];
    int64_t rank = 0;
    int32_t k, kept = 0;
    for (k = 0; k < tree->n; k++) {
        int32_t const e = tree->node[tree->first_leaf + k].link;
        nearfield_i_load(search, id[e], q);
        rank = k > 0 && memcmp(p, q, sizeof p) == 0 ? rank + 1 : 0;
        stays[e] = rank <= keeps;
        kept += stays[e];
        memcpy(p, q, sizeof p);
    }
    if (kept > tree->n / 2) return tree->n;
    for (k = 0, kept = 0; k < tree->n; k++) {
        if (!stays[k]) continue;
        memmove(at + 4 * (size_t)kept, at + 4 * (size_t)k, 4 * sizeof *at);
        id[kept++] = id[k];
    }
    return kept;
}

/* The trees of a system. */
static nlist_result nearfield_i_plant(nearfield_search *search)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const int32_t *first = nearfield_i_ints(trees, NEARFIELD_I_FIRSTS);
    int32_t g;
    trees->thinned = 0;
    for (g = 0; g < trees->groups; g++) {
        lbvh *tree = nearfield_i_tree(trees, g);
        nlist_real *at = (nlist_real *)trees->block[NEARFIELD_I_PLACES].memory +
                         4 * (size_t)first[g];
        int32_t const n = first[g + 1] - first[g];
        int32_t *id = nearfield_i_ints(trees, NEARFIELD_I_IDS) + first[g];
        nlist_result result;
        int32_t kept = n;
        memset(tree, 0, sizeof *tree);
        trees->planted = g + 1;
        result = nearfield_i_plant_one(search, tree, at, n);
        if (result != NLIST_OK) return result;
        if (trees->keeps == 0 || trees->keeps >= n) continue;
        result = nearfield_i_room(search, NEARFIELD_I_COUNTS, n, sizeof(int32_t));
        if (result == NLIST_OK)
            kept = nearfield_i_thin(search, tree, at, id,
                                    nearfield_i_ints(trees, NEARFIELD_I_COUNTS));
        if (result == NLIST_OK && kept < n) {
            trees->thinned = 1;
            result = nearfield_i_plant_one(search, tree, at, kept);
        }
        if (result != NLIST_OK) return result;
    }
    return NLIST_OK;
}

/* ---- the walks of a row ---- */

/* Tests the image of point j that lies where `image` says, in the caller's vectors. */
static nlist_result nearfield_i_test(nearfield_search *search, const nearfield_i_row *own,
                                     int32_t j, const int32_t image[3])
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const int32_t *wrap = nearfield_i_ints(trees, NEARFIELD_I_WRAPS) +
                          3 * ((size_t)j - (size_t)trees->frame.first);
    nearfield_i_entry entry;
    nlist_real q[3], t[3], d[3];
    int a;
    search->tests++;
    for (a = 0; a < 3; a++) entry.shift[a] = image[a] - wrap[a] + own->wrap[a];
    if (own->id == j && !(entry.shift[0] | entry.shift[1] | entry.shift[2])) return NLIST_OK;
    if (search->half && (own->id > j || (own->id == j && !nlist_i_positive(entry.shift))))
        return NLIST_OK;
    nearfield_i_load(search, j, q);
    nlist_i_translation(&trees->frame, entry.shift, t);
    entry.j = j;
    entry.d2 = nlist_i_offset(own->p, q, t, d);
    if (!(entry.d2 <= nlist_i_limit(&trees->desc, own->radius,
                                    search->radii ? search->radii[j] : 0)))
        return NLIST_OK;
    if ((search->radii || search->between) &&
        !(nlist_i_root_real(entry.d2) < nearfield_i_cutoff(search, own->id, j)))
        return NLIST_OK;
    return nearfield_i_add(search, &entry);
}

/* The square of a reach for walks, on the far side of all roundings. */
static lbvh_real nearfield_i_reach2(double reach2, double slack)
{
    double const reach = nlist_i_root(reach2) + slack;
    double const wider = NLIST_I_REAL_KIND == 1 ? 1.000001 : 1.000000000000004;
    double const far2 = nlist_i_product(reach, reach) * wider;
    lbvh_real const largest = lbvh_i_largest();
    return far2 < (double)largest ? (lbvh_real)far2 : largest;
}

/* The square of a reach, or of the distance to the last of the k nearest that the row has, where
   that is less. */
static lbvh_real nearfield_i_shrunk(nearfield_i_trees *trees, const nearfield_i_row *own,
                                    lbvh_real far2)
{
    const nearfield_i_entry *row = (nearfield_i_entry *)trees->block[NEARFIELD_I_ROW].memory;
    if (trees->keeps == 0 || trees->by_id || trees->count < trees->keeps) return far2;
    return lbvh_i_min(far2, nearfield_i_reach2((double)row[0].d2, own->slack));
}

/* Walks a tree for one image. s: in the vectors of the search. */
static nlist_result nearfield_i_walk(nearfield_search *search, const nearfield_i_row *own,
                                     int32_t group, const int32_t s[3], double reach2)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const nlist_i_frame *frame = &trees->frame;
    const int32_t *id = nearfield_i_ints(trees, NEARFIELD_I_IDS) +
                        nearfield_i_ints(trees, NEARFIELD_I_FIRSTS)[group];
    nlist_result result = NLIST_OK;
    const lbvh *tree = nearfield_i_tree(trees, group);
    lbvh_real const far2 =
        nearfield_i_shrunk(trees, own, nearfield_i_reach2(reach2, own->slack));
    int32_t image[3];
    lbvh_real p[3];
    lbvh_near walk;
    int a, b;
    for (b = 0; b < 3; b++) {
        double x = own->at[b];
        image[b] = 0;
        for (a = 0; a < 3; a++) {
            x -= nlist_i_product((double)s[a], frame->vector[a][b]);
            image[b] += s[a] * frame->basis[a][b];
        }
        p[b] = (lbvh_real)x;
    }
    if (!(lbvh_box_distance2(&tree->node[0], p) <= far2)) return NLIST_OK;
    walk = lbvh_near_point(tree, p, 1);
    walk.reach2 = far2;
    while (result == NLIST_OK && lbvh_next_near(&walk)) {
        result = nearfield_i_test(search, own, id[walk.id], image);
        walk.reach2 = nearfield_i_shrunk(trees, own, walk.reach2);
    }
    return result;
}

/* Walks a tree for all images whose points lie no further than `lateral` along the periodic
   axes. */
static nlist_result nearfield_i_walk_images(nearfield_search *search, const nearfield_i_row *own,
                                            int32_t group, double reach2, double lateral)
{
    const nlist_i_frame *frame = &nearfield_i_trees_of(search)->frame;
    int32_t const none[3] = {0, 0, 0};
    int32_t range[3], s[3];
    double all = 1;
    nlist_result result;
    int a;
    for (a = 0; a < 3; a++) {
        double const reach = frame->periodic[a]
                                 ? nlist_i_floor(lateral * frame->thick[a] * 1.000001 + 1e-6) + 1
                                 : 0;
        all *= 2 * reach + 1;
        if (!(all < 2147482624.0)) return NLIST_TOO_MANY_IMAGES;
        range[a] = (int32_t)reach;
    }
    result = nearfield_i_walk(search, own, group, none, reach2);
    for (s[0] = -range[0]; s[0] <= range[0]; s[0]++)
        for (s[1] = -range[1]; s[1] <= range[1]; s[1]++)
            for (s[2] = -range[2]; s[2] <= range[2]; s[2]++)
                if (result == NLIST_OK && (s[0] | s[1] | s[2]))
                    result = nearfield_i_walk(search, own, group, s, reach2);
    return result;
}

/* How far the row looks for points of a group, without their radii; < 0: not at all. */
static double nearfield_i_reach(const nearfield_search *search, const nearfield_i_row *own,
                                int32_t group)
{
    if (search->radii) return (double)own->radius;
    if (!search->between) return (double)search->cutoff;
    if (own->kind < 0) return -1;
    return (double)search->table[(size_t)own->kind * (size_t)search->kinds + (size_t)group];
}

/* The k nearest without a cutoff, in a box that repeats: along the periodic axes the row looks
   further and further, until what it keeps is nearer than all that it has not seen. */
static nlist_result nearfield_i_nearest_images(nearfield_search *search, const nearfield_i_row *own,
                                               double cutoff)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const nlist_i_frame *frame = &trees->frame;
    double lateral = 0, reach2 = 0;
    nlist_result result = NLIST_OK;
    int a;
    for (a = 0; a < 3; a++)
        if (frame->periodic[a] && !(lateral > 0 && lateral * frame->thick[a] < 0.5))
            lateral = 0.5 / frame->thick[a];
    while (result == NLIST_OK) {
        const nearfield_i_entry *row;
        int const last = own->gap2 + lateral * lateral >= cutoff * cutoff;
        reach2 = last ? cutoff * cutoff : own->gap2 + lateral * lateral;
        trees->count = 0;
        result = nearfield_i_walk_images(search, own, 0, reach2, lateral);
        row = (const nearfield_i_entry *)trees->block[NEARFIELD_I_ROW].memory;
        if (last) break;
        if (trees->count == trees->keeps && (double)row[0].d2 <= reach2) break;
        lateral *= 2;
    }
    return result;
}

/* Finds a row. With search->self it begins with the point itself, where 0 is nearer than its
   cutoff. */
static nlist_result nearfield_i_find_row(nearfield_search *search, const nearfield_i_row *own)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    nlist_result result = NLIST_OK;
    int32_t group;
    trees->count = 0;
    if (search->self && nearfield_i_cutoff(search, own->id, own->id) > 0) {
        nearfield_i_entry itself;
        memset(&itself, 0, sizeof itself);
        itself.j = own->id;
        result = nearfield_i_add(search, &itself);
    }
    for (group = 0; group < trees->groups && result == NLIST_OK; group++) {
        double const reach = nearfield_i_reach(search, own, group);
        double const whole = reach + (double)trees->largest + own->slack;
        double const lateral2 = whole * whole - own->gap2;
        if (!(reach >= 0) || nearfield_i_tree(trees, group)->n == 0) continue;
        if (trees->repeats && trees->keeps > 0 && !trees->by_id)
            result = nearfield_i_nearest_images(search, own, reach);
        else
            result = nearfield_i_walk_images(search, own, group, reach * reach,
                                             trees->repeats && lateral2 > 0 ? nlist_i_root(lateral2)
                                                                           : 0);
    }
    return result;
}

/* ---- all rows ---- */

/* The row of point i, or of query i. */
static int nearfield_i_row_of(nearfield_search *search, int32_t i, nearfield_i_row *own)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const nlist_i_frame *frame = &trees->frame;
    double const unit = NLIST_I_REAL_KIND == 1 ? 5.9604644775390625e-8 : 1.1102230246251565e-16;
    double most = trees->extent.most;
    int a;
    if (search->queries) memcpy(own->p, search->queries + 3 * (size_t)i, sizeof own->p);
    else nearfield_i_load(search, i, own->p);
    own->id = search->queries ? -1 : i;
    own->radius = search->radii ? search->radii[i] : 0;
    own->kind = search->between ? search->of[i] : 0;
    if (!nearfield_i_into_cell(frame, own->p, own->at, own->wrap)) return 0;
    own->gap2 = 0;
    for (a = 0; a < 3; a++) {
        double const x = nlist_i_magnitude((double)own->p[a]);
        double const f = frame->periodic[a] ? 0 : nlist_i_fraction(frame, a, own->p);
        double gap = frame->periodic[a] ? 0 : trees->extent.low[a] - f;
        if (!frame->periodic[a] && f - trees->extent.high[a] > gap) gap = f - trees->extent.high[a];
        if (x > most) most = x;
        gap = gap * 0.999999;
        if (gap > 0) own->gap2 += gap * gap;
    }
    own->slack = search->radii ? 8 * unit * (most + (double)trees->largest) : 0;
    if (trees->repeats)
        own->slack += 4 * nlist_i_blur(frame, (double)(own->radius + trees->largest), most);
    return 1;
}

/* A tree over the queries of a system, for its order of them: near ones follow each other, and find
   the same nodes in the caches. Empty where there are few. */
static lbvh nearfield_i_order_queries(nearfield_search *search, int32_t s)
{
    lbvh order;
    lbvh_desc desc;
    memset(&order, 0, sizeof order);
    memset(&desc, 0, sizeof desc);
    if (!search->queries || search->query_starts[s + 1] - search->query_starts[s] < 256)
        return order;
    desc.kind = LBVH_POINTS;
    desc.allocator.alloc = nearfield_i_alloc;
    desc.allocator.free = nearfield_i_free;
    desc.allocator.user = search;
    if (lbvh_build(&order, &desc, search->queries + 3 * (size_t)search->query_starts[s],
                   3 * sizeof(nlist_real),
                   search->query_starts[s + 1] - search->query_starts[s]) != LBVH_OK)
        lbvh_free(&order);
    return order;
}

/* The rows of a system: those of points in the order of the tree, where near ones are near in
   memory. */
static nlist_result nearfield_i_find_system(nearfield_search *search, int32_t s)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const int32_t *starts = search->queries ? search->query_starts : search->starts;
    const lbvh *tree = nearfield_i_tree(trees, 0);
    const int32_t *id = nearfield_i_ints(trees, NEARFIELD_I_IDS);
    int const in_order = !search->queries && !search->between && !trees->thinned;
    lbvh order = nearfield_i_order_queries(search, s);
    nlist_result result = NLIST_OK;
    int32_t k;
    for (k = 0; k < starts[s + 1] - starts[s] && result == NLIST_OK; k++) {
        int32_t i = starts[s] + k;
        nearfield_i_row own;
        if (in_order) i = id[tree->node[tree->first_leaf + k].link];
        else if (order.built) i = starts[s] + order.node[order.first_leaf + k].link;
        result = NLIST_TOO_MANY_IMAGES;
        if (nearfield_i_row_of(search, i, &own)) result = nearfield_i_find_row(search, &own);
        if (result == NLIST_OK) result = nearfield_i_store_row(search, i);
    }
    lbvh_free(&order);
    return result;
}

/* Memory for a system, its frame, its trees, then its rows. */
static nlist_result nearfield_i_search_system(nearfield_search *search, int32_t s)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    nlist_i_frame *frame = &trees->frame;
    nlist_result result;
    int32_t n;
    memset(frame, 0, sizeof *frame);
    frame->first = search->starts[s];
    n = frame->n = search->starts[s + 1] - frame->first;
    trees->groups = search->between ? search->kinds : 1;
    trees->largest = 0;
    if (!nlist_i_frame_of(frame, &search->boxes[s], 3)) return NLIST_BAD_BOX;
    trees->repeats = frame->periodic[0] | frame->periodic[1] | frame->periodic[2];
    nearfield_i_measure(search, frame, &trees->extent);
    if (nearfield_i_room(search, NEARFIELD_I_TREES, trees->groups, sizeof(lbvh)) != NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_FIRSTS, trees->groups + 2, sizeof(int32_t)) !=
            NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_IDS, n, sizeof(int32_t)) != NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_PLACES, 4 * (int64_t)n, sizeof(nlist_real)) !=
            NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_WRAPS, 3 * (int64_t)n, sizeof(int32_t)) != NLIST_OK)
        return NLIST_OUT_OF_MEMORY;
    result = nearfield_i_place_all(search);
    if (result == NLIST_OK) result = nearfield_i_plant(search);
    if (result == NLIST_OK) result = nearfield_i_find_system(search, s);
    nearfield_i_fell(trees);
    return result;
}

/* Rows with desc.most: no row is longer, so all are put in the order of ids; or each keeps the
   nearest. */
static void nearfield_i_end_most(nearfield_search *search, int32_t rows)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const int64_t *begin = (const int64_t *)trees->block[NEARFIELD_I_BEGINS].memory;
    int32_t *length = nearfield_i_ints(trees, NEARFIELD_I_LENGTHS);
    nearfield_i_entry *row = (nearfield_i_entry *)trees->block[NEARFIELD_I_ROW].memory;
    int32_t i, k;
    for (i = 0; i < rows; i++) {
        int32_t *partner = nearfield_i_ints(trees, NEARFIELD_I_PARTNERS) + begin[i];
        int32_t *shift = nearfield_i_ints(trees, NEARFIELD_I_SHIFTS) + 3 * begin[i];
        if (trees->longest > search->most) {
            if (length[i] > search->most) length[i] = search->most;
            continue;
        }
        for (k = 0; k < length[i]; k++) {
            memset(&row[k], 0, sizeof row[k]);
            row[k].j = partner[k];
            if (trees->images) memcpy(row[k].shift, shift + 3 * k, sizeof row[k].shift);
        }
        nearfield_i_sort(row, row + length[i], length[i], 1);
        for (k = 0; k < length[i]; k++) {
            partner[k] = row[k].j;
            if (trees->images) memcpy(shift + 3 * k, row[k].shift, sizeof row[k].shift);
        }
    }
}

static int32_t nearfield_i_rows(const nearfield_search *search)
{
    return (search->queries ? search->query_starts : search->starts)[search->systems];
}

/* Finds the rows of all systems, whose points and boxes were checked. */
static nlist_result nearfield_i_find_in_trees(nearfield_search *search, const nlist_desc *desc)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    int32_t const rows = nearfield_i_rows(search);
    nlist_result result = NLIST_OK;
    const int32_t *length;
    int32_t s, i;
    trees->desc = *desc;
    trees->by_id = search->lowest > 0 || (search->nearest == 0 && search->most == 0);
    trees->keeps = search->lowest > 0 ? search->lowest
                   : search->most > 0 ? (int64_t)search->most + 1 : search->nearest;
    trees->used = 0;
    trees->longest = 0;
    trees->images = 0;
    for (s = 0; s < search->systems; s++)
        for (i = 0; i < 3; i++) if (search->boxes[s].periodic[i]) trees->images = 1;
    if (nearfield_i_room(search, NEARFIELD_I_BEGINS, rows, sizeof(int64_t)) != NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_LENGTHS, rows, sizeof(int32_t)) != NLIST_OK ||
        nearfield_i_room(search, NEARFIELD_I_ROW, 64, sizeof(nearfield_i_entry)) != NLIST_OK)
        return NLIST_OUT_OF_MEMORY;
    for (s = 0; s < search->systems && result == NLIST_OK; s++)
        result = nearfield_i_search_system(search, s);
    if (result != NLIST_OK) return result;
    if (search->most > 0) nearfield_i_end_most(search, rows);
    length = nearfield_i_ints(trees, NEARFIELD_I_LENGTHS);
    search->count = 0;
    for (i = 0; i < rows; i++) search->count += length[i];
    return NLIST_OK;
}

/* As nearfield_search_copy. */
static void nearfield_i_copy_rows(nearfield_search *search, int64_t *to_i, int64_t *to_j,
                                  int32_t *to_shift, nlist_real *distance, nlist_real *offset)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    const int32_t *starts = search->queries ? search->query_starts : search->starts;
    const int64_t *begin = (const int64_t *)trees->block[NEARFIELD_I_BEGINS].memory;
    const int32_t *length = nearfield_i_ints(trees, NEARFIELD_I_LENGTHS);
    int64_t e = 0, k;
    int32_t s = -1, i;
    for (i = 0; i < nearfield_i_rows(search); i++) {
        nearfield_i_row own;
        memset(&own, 0, sizeof own);
        while (s < 0 || i >= starts[s + 1]) {
            memset(&trees->frame, 0, sizeof trees->frame);
            (void)nlist_i_frame_of(&trees->frame, &search->boxes[++s], 3);
        }
        if (search->queries) memcpy(own.p, search->queries + 3 * (size_t)i, sizeof own.p);
        else nearfield_i_load(search, i, own.p);
        for (k = begin[i]; k < begin[i] + length[i]; k++, e++) {
            int32_t const j = nearfield_i_ints(trees, NEARFIELD_I_PARTNERS)[k];
            int32_t shift[3] = {0, 0, 0};
            nlist_real q[3], t[3], d[3], d2;
            if (trees->images)
                memcpy(shift, nearfield_i_ints(trees, NEARFIELD_I_SHIFTS) + 3 * k, sizeof shift);
            if (to_i) to_i[e] = i;
            if (to_j) to_j[e] = j;
            if (to_shift) memcpy(to_shift + 3 * e, shift, sizeof shift);
            if (!distance && !offset) continue;
            nearfield_i_load(search, j, q);
            nlist_i_translation(&trees->frame, shift, t);
            d2 = nlist_i_offset(own.p, q, t, d);
            if (distance) distance[e] = nlist_i_root_real(d2);
            if (offset) memcpy(offset + 3 * e, d, sizeof d);
        }
    }
}

/* ---- which search ---- */

/* 1 where the largest cutoff is three times an ordinary one or more: cells would be too wide. */
static int nearfield_i_spread(const nearfield_search *search, int32_t n)
{
    double sum = 0, largest = 0, ordinary = 0, pairs = 0;
    int32_t a, b;
    if (search->radii) {
        for (a = 0; a < n; a++) {
            sum += (double)search->radii[a];
            if ((double)search->radii[a] > largest) largest = (double)search->radii[a];
        }
        return largest * (double)n > 3 * sum;
    }
    if (!search->between || search->kinds > 1000) return 0;
    for (a = 0; a < search->kinds; a++)
        for (b = 0; b < search->kinds; b++) {
            double const reach = (double)search->table[(size_t)a * (size_t)search->kinds +
                                                       (size_t)b];
            double const share = (double)search->of_kind[a] * (double)search->of_kind[b];
            pairs += share;
            ordinary += share * reach * reach * reach;
            if (reach > largest) largest = reach;
        }
    return largest * largest * largest * pairs > 27 * ordinary;
}

/* 1 where points of a system crowd in its cells: there would be more cells than points, had all the
   width of the cutoff, and those that there are hold many. */
static int nearfield_i_crowd(nearfield_search *search, int32_t s, double gap)
{
    nearfield_i_trees *trees = nearfield_i_trees_of(search);
    nlist_i_frame frame;
    nlist_i_extent extent;
    double wanted = 1, squares = 0;
    int32_t *count;
    int32_t k, cell, wrap[3];
    int64_t cells;
    int a;
    memset(&frame, 0, sizeof frame);
    frame.first = search->starts[s];
    frame.n = search->starts[s + 1] - frame.first;
    if (frame.n < 512 || !nlist_i_frame_of(&frame, &search->boxes[s], 3)) return 0;
    nearfield_i_measure(search, &frame, &extent);
    frame.reach = gap;
    for (a = 0; a < 3; a++) {
        nlist_i_cut_axis(&frame, &extent, a, 0);
        wanted *= (double)frame.cells[a];
    }
    if (!(wanted > (double)frame.n) || !nlist_i_cut(&frame, &extent, gap)) return 0;
    cells = (int64_t)frame.cells[0] * frame.cells[1] * frame.cells[2];
    if (nearfield_i_room(search, NEARFIELD_I_COUNTS, cells, sizeof(int32_t)) != NLIST_OK) return 0;
    count = nearfield_i_ints(trees, NEARFIELD_I_COUNTS);
    memset(count, 0, sizeof *count * (size_t)cells);
    for (k = 0; k < frame.n; k++) {
        nlist_real p[3];
        nearfield_i_load(search, frame.first + k, p);
        if (nlist_i_place(&frame, p, &cell, wrap)) squares += 2.0 * count[cell]++ + 1;
    }
    return squares > 128.0 * (double)frame.n;
}

/* 1 for trees. */
static int nearfield_i_chooses_trees(nearfield_search *search, const nlist_desc *desc)
{
    int32_t const n = search->starts[search->systems];
    nlist_real largest = 0;
    int32_t s, i;
    if (search->queries || search->nearest > 0 || search->lowest > 0) return 1;
    if (search->way != 0) return search->way == 2;
    if (n < 512) return 0;
    if (nearfield_i_spread(search, n)) return 1;
    for (i = 0; search->radii && i < n; i++)
        if (search->radii[i] > largest) largest = search->radii[i];
    for (s = 0; s < search->systems; s++)
        if (nearfield_i_crowd(search, s, nlist_i_box_gap(desc, largest))) return 1;
    return 0;
}
