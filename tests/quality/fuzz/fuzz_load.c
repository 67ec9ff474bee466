/* fuzz_load.c - ugrid_load, lbvh_load, nlist_load and nbody_load of any bytes, and of saved files
   that were changed, their checksums made right again so that the checks behind them are reached.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here. */

#include "fuzz.h"
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_SETS
#define NBODY_WITH_PERIODIC
#define NBODY_WITH_VORTEX
#define NBODY_WITH_FUNCTION
#define NBODY_IMPLEMENTATION
#include "nbody.h"

enum {
    HEAP_MOST = 1 << 22, LBVH_HEAD = 64, NLIST_HEAD = 136,
    UGRID_HEAD = sizeof(real) == 4 ? 144 : 176, NBODY_HEAD = sizeof(real) == 4 ? 144 : 168
};

typedef struct file { uint8_t *bytes; int64_t size; } file;

/* FNV-1a over all, with zeros where the sum itself is: the last 8 bytes of the head, in both
   formats. */
static void mend(file *f, int64_t head)
{
    uint64_t sum = 0xCBF29CE484222325u;
    int64_t k;
    if (f->size < head) return;
    memset(f->bytes + head - 8, 0, 8);
    for (k = 0; k < f->size; k++) sum = (sum ^ f->bytes[k]) * 0x100000001B3u;
    memcpy(f->bytes + head - 8, &sum, 8);
}

static void put32(file *f, int64_t at, uint32_t value)
{
    if (at >= 0 && at + 4 <= f->size) memcpy(f->bytes + at, &value, 4);
}

static void resize(file *f, int64_t size)
{
    uint8_t *bytes = (uint8_t *)fz_exactly((size_t)size);
    memset(bytes, 0, (size_t)size);
    memcpy(bytes, f->bytes, (size_t)(size < f->size ? size : f->size));
    free(f->bytes);
    f->bytes = bytes;
    f->size = size;
}

/* Changes at places that the bytes name: single bits and bytes, whole numbers that count, floats
   that break, words that change places. */
static void damage(fz *f, file *x, int64_t head)
{
    int k, changes = fz_below(f, 5);
    for (k = 0; k < changes && x->size > 0; k++) {
        int const what = fz_u8(f);
        int64_t const in_head = what & 128, span = in_head && x->size > head ? head : x->size;
        int64_t const at = fz_u16(f) % span, word = at / 4 * 4;
        int64_t const other = fz_u16(f) % x->size / 4 * 4;
        uint32_t a = 0, b = 0;
        real r;
        switch (what % 8) {
        case 0: x->bytes[at] ^= (uint8_t)(1 << fz_below(f, 8)); break;
        case 1: x->bytes[at] = (uint8_t)fz_u8(f); break;
        case 2: put32(x, word, (uint32_t)fz_choice(f, 40)); break;
        case 3: put32(x, word, fz_u32(f)); break;
        case 4:
            r = fz_special(f);
            if (word + (int64_t)sizeof r <= x->size) memcpy(x->bytes + word, &r, sizeof r);
            break;
        case 5:
            if (word + 4 <= x->size && other + 4 <= x->size) {
                memcpy(&a, x->bytes + word, 4);
                memcpy(&b, x->bytes + other, 4);
                put32(x, word, b);
                put32(x, other, a);
            }
            break;
        case 6:
            if (word + 4 <= x->size) {
                memcpy(&a, x->bytes + word, 4);
                put32(x, word, a + (uint32_t)fz_below(f, 9) - 4);
            }
            break;
        default:
            resize(x,
                   what & 64 ? x->size + fz_u8(f) : x->size - (x->size < 200 ? 0 : fz_u8(f) % 100));
            break;
        }
    }
}

/* What is left of the input, as a file. */
static file rest_of(fz *f, const void *start, size_t known)
{
    file x;
    x.size = (int64_t)(fz_left(f) + known);
    x.bytes = (uint8_t *)fz_exactly((size_t)x.size);
    if (known) memcpy(x.bytes, start, known);
    memcpy(x.bytes + known, f->at, fz_left(f));
    return x;
}

/* ------------------------------------------------------------------------------------------------
   lbvh_load
   ---------------------------------------------------------------------------------------------- */

static file saved_tree(fz *f)
{
    int const c = fz_u8(f), dim = c & 1 ? 2 : 3;
    int32_t const n = fz_u8(f) % 40;
    real *x = FZ_NEW(real, n * 2 * dim);
    uint32_t *masks = FZ_NEW(uint32_t, n);
    lbvh tree;
    lbvh_desc d;
    file out = {NULL, 0};
    int32_t i;
    int a;
    memset(&tree, 0, sizeof tree);
    memset(&d, 0, sizeof d);
    d.dim = dim;
    d.bits = c & 2 ? 30 : 63;
    d.skip_invalid = 1;
    if (c & 4) d.masks = masks;
    fz_seed(f);
    for (i = 0; i < n; i++) {
        masks[i] = fz_roll(f, 8);
        for (a = 0; a < dim; a++) {
            x[2 * dim * i + a] = (real)fz_roll(f, c & 8 ? 3 : 40);
            x[2 * dim * i + dim + a] = x[2 * dim * i + a] + (real)fz_roll(f, 5) - (c & 16 ? 1 : 0);
        }
    }
    FZ_CHECK(lbvh_build(&tree, &d, x, 0, n) == LBVH_OK);
    FZ_CHECK(lbvh_save(&tree, NULL, 0, &out.size) == LBVH_BUFFER_TOO_SMALL);
    out.bytes = (uint8_t *)fz_exactly((size_t)out.size);
    FZ_CHECK(lbvh_save(&tree, out.bytes, out.size, &out.size) == LBVH_OK);
    lbvh_free(&tree);
    free(masks);
    free(x);
    return out;
}

/* An untrusted tree: every search ends, and finds what is in the leaves. */
static void use_tree(const lbvh *tree, fz *f)
{
    int const dim = tree->desc.dim;
    int64_t pairs = -1, want = 0;
    real p[3], along[3], d2[4], box[6];
    int32_t i, j, ids[4], found = -1, met = 0, touched = 0;
    lbvh_quality quality;
    lbvh_overlap o;
    lbvh_ray ray;
    int a;
    FZ_CHECK(lbvh_count_pairs(tree, &pairs) == LBVH_OK);
    for (i = 0; i < tree->n; i++) for (j = i + 1; j < tree->n; j++) {
            const lbvh_node *x = &tree->node[tree->first_leaf + i],
                            *y = &tree->node[tree->first_leaf + j];
            int touch = !lbvh_left_out(x) && !lbvh_left_out(y);
            for (a = 0; a < dim; a++)
                touch = touch && x->min[a] <= y->max[a] && y->min[a] <= x->max[a];
            if (tree->mask)
                touch =
                    touch && (tree->mask[tree->first_leaf + i] & tree->mask[tree->first_leaf + j]);
            want += touch;
    }
    FZ_CHECK(pairs == want);
    for (a = 0; a < 3; a++) p[a] = fz_real(f), along[a] = fz_real(f), box[a] = p[a];
    for (a = 0; a < dim; a++) box[dim + a] = box[a] + fz_length(f);
    o = lbvh_overlap_box(tree, box);
    while (lbvh_next(&o)) FZ_CHECK(o.id >= 0 && o.id < tree->n && ++met <= tree->n);
    for (i = 0; i < tree->n; i++) {
        const lbvh_node *x = &tree->node[tree->first_leaf + i];
        int touch = !lbvh_left_out(x) && (!tree->mask || tree->mask[tree->first_leaf + i]);
        for (a = 0; a < dim; a++)
            touch =
                touch && box[a] <= box[dim + a] && x->min[a] <= box[dim + a] && box[a] <= x->max[a];
        touched += touch;
    }
    FZ_CHECK(met == touched);
    FZ_CHECK(lbvh_nearest(tree, p, 4, fz_infinity(), NULL, NULL, ids, d2, &found) == LBVH_OK &&
             found >= 0 && found <= 4);
    for (i = 0; i < found; i++)
        FZ_CHECK(ids[i] >= 0 && ids[i] < tree->n && (i == 0 || d2[i] >= d2[i - 1]));
    ray = lbvh_ray_cast(tree, p, along, fz_infinity());
    for (met = 0; lbvh_next_ray(&ray); met++)
        FZ_CHECK(ray.id >= 0 && ray.id < tree->n && met < tree->n);
    FZ_CHECK(lbvh_measure(tree, &quality) == LBVH_OK && quality.depth < LBVH_STACK);
}

static void load_tree(fz *f, file *x)
{
    fz_heap heap = fz_heap_of(HEAP_MOST);
    int const c = fz_u8(f);
    lbvh tree;
    lbvh_desc d;
    lbvh_result r;
    memset(&tree, 0, sizeof tree);
    memset(&d, 0, sizeof d);
    if (c & 1) {
        d.allocator.alloc = fz_alloc;
        d.allocator.free = fz_free;
        d.allocator.user = &heap;
        if (c >= 200) heap.fail_at = c % 5 + 1;
    }
    if (c & 2) { /* over a tree that is there */
        real const boxes[12] = {0, 0, 0, 1, 1, 1, 0, 0, 0, 2, 2, 2};
        (void)lbvh_build(&tree, &d, boxes, 0, 2);
    }
    heap.failed = 0;
    r = lbvh_load(&tree, &d, x->bytes, x->size);
    FZ_TRACE("tree of %lld bytes: %s, n %d", (long long)x->size, lbvh_result_text(r), tree.n);
    FZ_CHECK_CODE(r == LBVH_OK || r == LBVH_BAD_FILE || (r == LBVH_OUT_OF_MEMORY && heap.failed),
                  lbvh_result_text(r));
    /* no more memory than the file is long, whatever it says */
    FZ_CHECK(heap.largest <= 2 * x->size + 1024);
    heap.fail_at = 0;
    if (r != LBVH_OK) FZ_CHECK(tree.n == 0 && lbvh_validate(&tree) == LBVH_NOT_BUILT);
    else {
        int64_t needed = -1;
        uint8_t *again = (uint8_t *)fz_exactly((size_t)x->size);
        int32_t k;
        FZ_CHECK(lbvh_validate(&tree) == LBVH_OK && tree.desc.kind == LBVH_BOXES);
        for (k = 0; k < tree.n && tree.desc.dim == 2; k++) { /* 2D: min[2] = max[2] = 0 */
            const lbvh_node *leaf = &tree.node[tree.first_leaf + k];
            if (!lbvh_left_out(leaf)) FZ_CHECK(leaf->min[2] == 0 && leaf->max[2] == 0);
        }
        FZ_CHECK(lbvh_save(&tree, again, x->size, &needed) == LBVH_OK && needed == x->size);
        if (tree.n > 0) FZ_CHECK(memcmp(again, x->bytes, (size_t)needed) == 0);
        free(again);
        use_tree(&tree, f);
        if (tree.n > 0) { /* it can be refitted, with boxes */
            real *boxes = FZ_NEW(real, 2 * tree.desc.dim * tree.n);
            for (k = 0; k < 2 * tree.desc.dim * tree.n; k++)
                boxes[k] = (real)(k % (2 * tree.desc.dim) < tree.desc.dim ? k % 7 : 7 + k % 3);
            FZ_CHECK(lbvh_refit(&tree, boxes, 0) == LBVH_OK && lbvh_validate(&tree) == LBVH_OK);
            FZ_CHECK(lbvh_optimize(&tree, NULL) == LBVH_OK && lbvh_validate(&tree) == LBVH_OK);
            use_tree(&tree, f);
            free(boxes);
        }
    }
    lbvh_free(&tree);
    FZ_CHECK(heap.blocks == 0);
}

/* ------------------------------------------------------------------------------------------------
   nlist_load
   ---------------------------------------------------------------------------------------------- */

static void any_pos(fz *f, real *pos, int32_t n, int dim)
{
    int32_t k;
    for (k = 0; k < n * dim; k++) pos[k] = (real)(fz_roll(f, 32) / 8.0);
}

/* Some notes in the history. */
static void note_all(nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n && list->desc.history > 0; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e))
            memset(e.history, 1 + (int)(e.entry % 250), (size_t)list->desc.history);
    }
}

static file saved_list(fz *f)
{
    int const c = fz_u8(f), more = fz_u8(f), dim = c & 1 ? 2 : 3;
    int32_t const n = 1 + fz_u8(f) % 30;
    real pos[90];
    nlist list;
    nlist_desc d;
    file out = {NULL, 0};
    int32_t name[30], i;
    memset(&list, 0, sizeof list);
    memset(&d, 0, sizeof d);
    fz_seed(f);
    any_pos(f, pos, n, dim);
    d.dim = dim;
    d.radius = (real)(0.25 * (1 + more % 6));
    d.skin = c & 2 ? (real)0.25 : 0;
    d.half = c >> 2 & 1;
    d.history = c & 8 ? 1 + more % 9 : 0;
    d.events = c >> 4 & 1;
    if (c & 32) d.periodic[more % dim] = 1, d.max[0] = d.max[1] = d.max[2] = 4;
    if (c & 128) {
        real const mesh_points[18] = {0, 0, 0, 4, 0, 0, 0, 4, 0, 4, 4, 0, 4, 0, 0, 0, 4, 0};
        lbvh tree;
        lbvh_desc t;
        nlist_mesh mesh;
        memset(&tree, 0, sizeof tree);
        memset(&t, 0, sizeof t);
        memset(&mesh, 0, sizeof mesh);
        t.kind = LBVH_TRIANGLES;
        mesh.vertices = mesh_points;
        mesh.triangles = 2;
        d.dim = 3;
        d.skin = 0;
        memset(d.periodic, 0, sizeof d.periodic);
        any_pos(f, pos, n, 3);
        FZ_CHECK(lbvh_build(&tree, &t, mesh_points, 0, 2) == LBVH_OK);
        FZ_CHECK(nlist_build_mesh(&list, &d, &tree, &mesh, pos, 0, n) == NLIST_OK);
        lbvh_free(&tree);
    } else FZ_CHECK(nlist_build_brute(&list, &d, pos, 0, n) == NLIST_OK);
    note_all(&list);
    if (c & 64) {
        for (i = 0; i < n; i++) name[i] = (i + 1 + more) % n;
        FZ_CHECK(nlist_remap(&list, name, n) == NLIST_OK);
    }
    FZ_CHECK(nlist_save(&list, NULL, 0, &out.size) == NLIST_BUFFER_TOO_SMALL);
    out.bytes = (uint8_t *)fz_exactly((size_t)out.size);
    FZ_CHECK(nlist_save(&list, out.bytes, out.size, &out.size) == NLIST_OK);
    nlist_free(&list);
    return out;
}

static int on_contact(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    const nlist *list = (const nlist *)user;
    FZ_CHECK(i >= 0 && i < list->n && j >= 0 && (list->keys || j < list->n) &&
             !history == (list->desc.history == 0));
    own[0] = 1;
    other[0] = 1;
    return 1;
}

/* Untrusted keys name triangles below the count that came with them: in a mesh of as many,
   where these contacts act can be computed. (Not in one of more than 4096.) */
static void use_keys(const nlist *list)
{
    nlist_mesh mesh;
    real *corners, q[3];
    static const real p[3] = {1, 2, 3};
    int32_t i;
    memset(&mesh, 0, sizeof mesh);
    FZ_CHECK(list->desc.layout == NLIST_DYNAMIC && list->triangles >= 0);
    if (list->triangles > 4096) return;
    corners = FZ_NEW(real, 9 * list->triangles);
    for (i = 0; i < 9 * list->triangles; i++) corners[i] = (real)(i % 7);
    mesh.vertices = corners;
    mesh.triangles = list->triangles;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            FZ_CHECK(nlist_key_feature(e.id) <= 6);
            (void)nlist_mesh_closest(&mesh, nlist_key_triangle(e.id), p, q);
        }
    }
    free(corners);
}

/* An untrusted list: it can be read, summed, renamed, built upon, saved. */
static void use_list(nlist *list, fz *f)
{
    int32_t const n = list->n;
    int const dim = list->desc.dim;
    real *sums = FZ_NEW(real, n), *pos = FZ_NEW(real, 3 * n);
    int32_t *pair = FZ_NEW(int32_t, 2 * list->total), *shift = FZ_NEW(int32_t, 3 * list->total),
            *name = FZ_NEW(int32_t, n), i, moved = -1;
    int64_t needed = -1, entries = 0;
    nlist_sums how;
    nlist_result r;
    if (list->keys) use_keys(list);
    any_pos(f, pos, n, 3);
    memset(sums, 0, (size_t)n * sizeof *sums);
    memset(&how, 0, sizeof how);
    how.values = 1;
    for (i = 0; i < n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            FZ_CHECK(e.id >= 0 && (list->keys || e.id < n) && ++entries <= list->total);
            if (e.history) memset(e.history, 7, (size_t)list->desc.history);
        }
    }
    FZ_CHECK(entries == list->total);
    r = nlist_sum(list, &how, on_contact, list, sums);
    FZ_CHECK_CODE(r == NLIST_OK || r == NLIST_BAD_WIDTH || r == NLIST_BAD_UNIT,
                  nlist_result_text(r));
    r = nlist_pairs(list, pair, list->total, &needed, list->keys ? NULL : pos, 0,
                    list->keys ? NULL : shift);
    FZ_CHECK(r == NLIST_OK || r == NLIST_NOT_FINITE);
    r = nlist_moved(list, pos, 0, &moved);
    FZ_CHECK(r == NLIST_OK || r == NLIST_BAD_SKIN);
    for (i = 0; i < n; i++) name[i] = i % 5 == 4 ? -1 : n - 1 - i;
    r = nlist_remap(list, name, n);
    FZ_CHECK_CODE(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY || r == NLIST_ROW_FULL,
                  nlist_result_text(r));
    if (list->n > 0 && !list->keys) {
        nlist_desc d = list->desc;
        d.radius = (real)0.5;
        d.skin = 0;
        r = nlist_build_brute(list, &d, pos, 0, n + (dim == 2 && n > 1 ? -1 : 0));
        FZ_CHECK_CODE(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY || r == NLIST_ROW_FULL ||
                          r == NLIST_LIST_FULL || r == NLIST_BAD_PERIOD,
                      nlist_result_text(r));
        FZ_CHECK(nlist_validate(list) == NLIST_OK || r != NLIST_OK);
    }
    r = nlist_save(list, NULL, 0, &needed);
    FZ_CHECK(r == (list->built ? NLIST_BUFFER_TOO_SMALL : NLIST_NOT_BUILT));
    free(name);
    free(shift);
    free(pair);
    free(pos);
    free(sums);
}

static void load_list(fz *f, file *x)
{
    fz_heap heap = fz_heap_of(HEAP_MOST);
    int const c = fz_u8(f), more = fz_u8(f);
    real const two[6] = {0, 0, 0, 1, 0, 0};
    nlist list;
    nlist_desc d, small;
    nlist_result r;
    memset(&list, 0, sizeof list);
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.layout = (nlist_layout)(c & 3);
    d.width = c & 4 ? 1 + more % 40 : 0;
    d.grow = c >> 3 & 1;
    d.events = c >> 4 & 1;
    d.history = more >= 230 ? more - 225 : 0;
    d.skin = more % 8 == 7 ? (real)0.125 : 0;
    d.dim = more % 16 == 5 ? 2 : 0;
    d.capacity = more % 16 == 6 ? more : 0;
    d.allocator.alloc = fz_alloc;
    d.allocator.free = fz_free;
    d.allocator.user = &heap;
    small = d;
    small.skin = 0;
    small.dim = 3;
    small.layout = NLIST_COMPACT;
    small.width = small.events = 0;
    small.capacity = small.history = 0;
    /* over a list that is there */
    if (c & 32)
        FZ_CHECK(nlist_build_brute(&list, &small, two, 0, 2) == NLIST_OK && list.total == 2);
    heap.failed = 0;
    if (c >= 224) heap.fail_at = heap.calls + 1 + c % 12;
    r = nlist_load(&list, &d, x->bytes, x->size);
    FZ_TRACE("list of %lld bytes: %s, n %d half %d history %d keys %d", (long long)x->size,
             nlist_result_text(r), list.n, list.desc.half, list.desc.history, list.keys);
    FZ_CHECK_CODE(
        r == NLIST_OK || r == NLIST_BAD_FILE || (r == NLIST_OUT_OF_MEMORY && heap.failed) ||
            (r == NLIST_BAD_HISTORY && d.history) || (r == NLIST_BAD_DIM && d.dim) ||
            (r == NLIST_BAD_SKIN && d.skin > 0) ||
            (r == NLIST_BAD_OPTION && (d.layout == NLIST_STATIC || d.layout == NLIST_HYBRID)) ||
            (r == NLIST_ROW_FULL && d.layout == NLIST_STATIC && !d.grow) ||
            (r == NLIST_LIST_FULL && d.capacity && !d.grow),
        nlist_result_text(r));
    heap.fail_at = 0;
    if (r != NLIST_OK && (c & 32) && !(r == NLIST_OUT_OF_MEMORY && list.n == 0)) {
        /* as it was */
        FZ_CHECK(list.n == 2 && list.total == 2 && nlist_validate(&list) == NLIST_OK);
        FZ_CHECK(nlist_find(&list, 0, 1) >= 0 && nlist_find(&list, 1, 0) >= 0);
    }
    if (r != NLIST_OK && !(c & 32)) FZ_CHECK(list.n == 0);
    if (r == NLIST_OK) {
        nlist_result const valid = nlist_validate(&list);
        FZ_CHECK_CODE(valid == NLIST_OK || (valid == NLIST_OUT_OF_MEMORY && heap.failed),
                      nlist_result_text(valid));
        use_list(&list, f);
    }
    nlist_free(&list);
    FZ_CHECK(heap.blocks == 0);
}

/* ------------------------------------------------------------------------------------------------
   ugrid_load
   ---------------------------------------------------------------------------------------------- */

static file saved_grid(fz *f)
{
    int const c = fz_u8(f), more = fz_u8(f);
    int32_t const n = fz_u8(f) % 40;
    real *pos = FZ_NEW(real, 3 * n);
    ugrid grid;
    ugrid_desc d;
    file out = {NULL, 0};
    int32_t i;
    memset(&grid, 0, sizeof grid);
    memset(&d, 0, sizeof d);
    d.dim = c & 1 ? 2 : 3;
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = c & 2 ? (real)0.3 : (real)0.5;
    d.method = (ugrid_method)(1 + (c >> 2 & 7) % 5);
    d.placement = c & 32 && d.method != UGRID_LIST_PACKED ? UGRID_TIGHT : UGRID_LOOSE;
    d.periodic[0] = c >> 6 & 1;
    d.outside = c & 128 ? UGRID_LEAVE_OUT : UGRID_CLAMP;
    d.cell_order = (ugrid_cell_order)(more & 1);
    d.slot_layout = (ugrid_slot_layout)(more >> 1 & 1);
    d.no_records = more >> 2 & 1;
    d.inverse = more >> 3 & 1;
    d.rows = n > 4 && more & 16 ? 3 : 0;
    d.grow = 1;
    d.slots = 2;
    fz_seed(f);
    for (i = 0; i < 3 * n; i++) pos[i] = (real)fz_roll(f, 24) / 16 - (real)0.2;
    FZ_CHECK(ugrid_build(&grid, &d, pos, 0, n) == UGRID_OK);
    FZ_CHECK(ugrid_save(&grid, NULL, 0, &out.size) == UGRID_BUFFER_TOO_SMALL);
    out.bytes = (uint8_t *)fz_exactly((size_t)out.size);
    FZ_CHECK(ugrid_save(&grid, out.bytes, out.size, &out.size) == UGRID_OK);
    ugrid_free(&grid);
    free(pos);
    return out;
}

/* An untrusted grid: every search ends, and finds only what is there. */
static void use_grid(const ugrid *grid)
{
    int64_t pairs = -1, needed = -1, *offsets = FZ_NEW(int64_t, grid->n + 1);
    real const radius = grid->desc.cell;
    int32_t k, *order = FZ_NEW(int32_t, grid->n), *ids = FZ_NEW(int32_t, grid->n * grid->n);
    ugrid_result r = ugrid_count_pairs(grid, radius, &pairs);
    FZ_CHECK(r == UGRID_OK || r == UGRID_BAD_RADIUS);
    FZ_CHECK(r != UGRID_OK || pairs <= (int64_t)grid->n * (grid->n - 1) / 2);
    r = ugrid_neighbors(grid, radius, 0, offsets, ids, (int64_t)grid->n * grid->n, &needed);
    FZ_CHECK(r == UGRID_OK || r == UGRID_BAD_RADIUS);
    for (k = 0; r == UGRID_OK && k < needed; k++) FZ_CHECK(ids[k] >= 0 && ids[k] < grid->n);
    for (k = 0; k < grid->n; k++) order[k] = k;
    if (grid->n > 0) FZ_CHECK(ugrid_gather(grid, order, sizeof *order, ids) == UGRID_OK);
    r = ugrid_save(grid, NULL, 0, &needed);
    FZ_CHECK(r == UGRID_BUFFER_TOO_SMALL);
    free(ids);
    free(order);
    free(offsets);
}

static void load_grid(fz *f, const file *x)
{
    fz_heap heap = fz_heap_of(HEAP_MOST);
    int const c = fz_u8(f);
    ugrid grid;
    ugrid_desc d;
    ugrid_result r;
    memset(&grid, 0, sizeof grid);
    memset(&d, 0, sizeof d);
    d.allocator.alloc = fz_alloc;
    d.allocator.free = fz_free;
    d.allocator.user = &heap;
    if (c >= 224) heap.fail_at = heap.calls + 1 + c % 6;
    r = ugrid_load(&grid, &d, x->bytes, x->size);
    FZ_TRACE("grid of %lld bytes: %s, n %d", (long long)x->size, ugrid_result_text(r), grid.n);
    FZ_CHECK_CODE(r == UGRID_OK || r == UGRID_BAD_FILE ||
                      (r == UGRID_OUT_OF_MEMORY && heap.failed), ugrid_result_text(r));
    heap.fail_at = 0;
    FZ_CHECK(r == UGRID_OK || (grid.n == 0 && !grid.built));
    if (r == UGRID_OK) use_grid(&grid);
    if (r == UGRID_OK && grid.pos) FZ_CHECK(ugrid_validate(&grid) == UGRID_OK);
    ugrid_free(&grid);
    FZ_CHECK(heap.blocks == 0);
}

/* ------------------------------------------------------------------------------------------------
   nbody_load
   ---------------------------------------------------------------------------------------------- */

static file saved_bodies(fz *f)
{
    int const c = fz_u8(f);
    int32_t const n = fz_u8(f) % 40;
    real *pos = FZ_NEW(real, 2 * n), *mass = FZ_NEW(real, n);
    nbody sim;
    nbody_desc d;
    file out = {NULL, 0};
    int32_t i;
    memset(&sim, 0, sizeof sim);
    memset(&d, 0, sizeof d);
    d.method = (nbody_method)(c & 3);
    d.law = (nbody_law)((c >> 2 & 3) % 3);
    d.order = d.method == NBODY_FORCE_NODES ? 1 + (c >> 4 & 3) : 0;
    d.leaf = c & 64 ? 2 : 0;
    d.levels = c & 128 ? 5 : 0;
    fz_seed(f);
    for (i = 0; i < n; i++) {
        pos[2 * i] = (real)fz_roll(f, 40) / 16;
        pos[2 * i + 1] = (real)fz_roll(f, 40) / 16;
        mass[i] = (real)fz_roll(f, 5);
    }
    FZ_CHECK(nbody_build(&sim, &d, pos, 0, mass, n) == NBODY_OK);
    FZ_CHECK(nbody_save(&sim, NULL, 0, &out.size) == NBODY_BUFFER_TOO_SMALL);
    out.bytes = (uint8_t *)fz_exactly((size_t)out.size);
    FZ_CHECK(nbody_save(&sim, out.bytes, out.size, &out.size) == NBODY_OK);
    nbody_free(&sim);
    free(mass);
    free(pos);
    return out;
}

static void load_bodies(fz *f, const file *x)
{
    fz_heap heap = fz_heap_of(HEAP_MOST);
    int const c = fz_u8(f);
    real at[2] = {(real)0.25, 1}, acc[2], potential;
    int32_t law = -1; /* of the file; a function of the caller is not there */
    nbody sim;
    nbody_desc d;
    nbody_result r;
    memset(&sim, 0, sizeof sim);
    memset(&d, 0, sizeof d);
    d.allocator.alloc = fz_alloc;
    d.allocator.free = fz_free;
    d.allocator.user = &heap;
    if (c >= 224) heap.fail_at = heap.calls + 1 + c % 8;
    r = nbody_load(&sim, &d, x->bytes, x->size);
    FZ_TRACE("bodies of %lld bytes: %s, n %d", (long long)x->size, nbody_result_text(r), sim.n);
    if (x->size >= NBODY_HEAD) memcpy(&law, x->bytes + 28, sizeof law);
    FZ_CHECK_CODE(r == NBODY_OK || r == NBODY_BAD_FILE ||
                      (r == NBODY_BAD_ARGUMENT && law == NBODY_FUNCTION) ||
                      (r == NBODY_OUT_OF_MEMORY && heap.failed), nbody_result_text(r));
    heap.fail_at = 0;
    FZ_CHECK(r == NBODY_OK || (sim.n == 0 && !sim.frame));
    if (r == NBODY_OK) {
        FZ_CHECK(nbody_fields_at(&sim, at, 0, 1, acc, &potential, NULL) == NBODY_OK);
        r = nbody_validate(&sim);
        FZ_CHECK_CODE(r == NBODY_OK || (r == NBODY_OUT_OF_MEMORY && heap.failed),
                      nbody_result_text(r));
    }
    nbody_free(&sim);
    FZ_CHECK(heap.blocks == 0);
}

/* ---------------------------------------------------------------------------------------------- */

/* What to load: by the mode, the first byte. */
enum { LISTS, TREES, GRIDS, SIMS };

static const int64_t head_of[4] = {NLIST_HEAD, LBVH_HEAD, UGRID_HEAD, NBODY_HEAD};

static file saved_of(fz *f, int what)
{
    return what == TREES ? saved_tree(f) : what == LISTS ? saved_list(f)
         : what == GRIDS ? saved_grid(f) : saved_bodies(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz f = fz_of(data, size);
    int const mode = fz_u8(&f), what = mode >= 192 ? GRIDS + (mode & 1) : mode & 1;
    int64_t const head = head_of[what];
    file x;
    if ((mode >> 1 & 3) == 0) x = rest_of(&f, NULL, 0);
    else {
        x = saved_of(&f, what);
        if ((mode >> 1 & 3) == 1) { /* the head of a real one, and anything behind it */
            file const whole = x;
            x = rest_of(&f, whole.bytes, (size_t)(whole.size < head ? whole.size : head));
            free(whole.bytes);
        }
        damage(&f, &x, head);
    }
    /* all but nlist.h write the size down, too: before the checksum, lbvh.h earlier */
    if (mode & 8 && what != LISTS && x.size >= head)
        memcpy(x.bytes + (what == TREES ? 48 : head - 16), &x.size, 8);
    if (!(mode & 16)) mend(&x, head);
    if (what == TREES) load_tree(&f, &x);
    else if (what == LISTS) load_list(&f, &x);
    else if (what == GRIDS) load_grid(&f, &x);
    else load_bodies(&f, &x);
    free(x.bytes);
    return 0;
}
