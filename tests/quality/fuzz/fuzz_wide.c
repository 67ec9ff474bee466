/* fuzz_wide.c - lbvh_wide: trees of triangles, boxes and points with masks, collapsed; rays,
   closest points, nearest elements and overlaps against loops over all elements; files, and damaged
   ones, their checksums made right again.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here. */

#include "fuzz.h"
#define LBVH_WITH_WIDE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"

enum { HEAP_MOST = 1 << 24, MOST = 200, HEAD = 64 };

typedef struct scene {
    lbvh_desc desc;
    lbvh_wide_desc wide_desc;
    int32_t n;
    int numbers;        /* of an element */
    int odd;            /* 3: with numbers whose products overflow; then only boxes are exact */
    real scale;
    real x[9 * MOST];
    uint32_t masks[MOST];
    fz_heap heap;
    lbvh tree;
    lbvh_wide wide;
} scene;

/* A coordinate: on a lattice, anywhere, or now and then one that breaks things. */
static real any_place(fz *f, const scene *s, int odd)
{
    if (odd == 3 && fz_roll(f, 40) == 0) return fz_real(f);
    return (odd & 1 ? (real)(fz_unit(f) * 8) : (real)(fz_roll(f, 33) / 4.0)) * s->scale;
}

static void any_element(fz *f, scene *s, int32_t i, int odd)
{
    int const dim = s->desc.dim;
    real *x = s->x + (size_t)i * (size_t)s->numbers;
    int k;
    for (k = 0; k < s->numbers; k++) {
        real const edge = (real)(fz_roll(f, 9) / 4.0) * s->scale;
        int const from = s->desc.kind == LBVH_TRIANGLES ? 3 * dim : dim;
        x[k] = any_place(f, s, odd);
        if (k >= dim && from > dim) x[k] = x[k % dim] + edge - s->scale;
        if (k >= dim && from == dim) x[k] = x[k - dim] + edge;
    }
}

static void any_scene(fz *f, scene *s)
{
    static const lbvh_kind kinds[4] = {LBVH_TRIANGLES, LBVH_TRIANGLES, LBVH_BOXES, LBVH_POINTS};
    /* within 1e-6 and 1e6 five lengths have a product */
    int const c = fz_u8(f), odd = fz_u8(f) % 4, power = fz_u8(f) % 13 - 6;
    int32_t i;
    memset(s, 0, sizeof *s);
    s->desc.kind = kinds[c & 3];
    s->desc.dim = c % 64 >= 48 ? 2 : 3;
    s->desc.skip_invalid = 1;
    s->desc.builder = c & 4 ? LBVH_SPLIT : LBVH_MERGE;
    if (c & 8) s->desc.masks = s->masks;
    s->wide_desc.leaf = c >> 6;
    s->wide_desc.copy = fz_u8(f) % 4 != 0;
    s->numbers = s->desc.dim * (s->desc.kind == LBVH_TRIANGLES ? 3
                                : s->desc.kind == LBVH_BOXES ? 2 : 1);
    s->scale = (real)pow(10, odd == 2 ? power : 0);
    s->n = fz_u8(f) % MOST;
    s->odd = odd;
    s->heap = fz_heap_of(HEAP_MOST);
    s->wide_desc.allocator.alloc = fz_alloc;
    s->wide_desc.allocator.free = fz_free;
    s->wide_desc.allocator.user = &s->heap;
    fz_seed(f);
    for (i = 0; i < s->n; i++) {
        s->masks[i] = fz_roll(f, 8);
        any_element(f, s, i, odd);
    }
}

/* 1: the element is found by searches. */
static int counts(const scene *s, int32_t i)
{
    real min[3], max[3];
    return lbvh_box_of(&s->desc, s->x, (size_t)s->numbers * sizeof(real), i, min, max) == LBVH_OK;
}

static uint32_t mask_of(const scene *s, int32_t i) { return s->desc.masks ? s->masks[i] : ~0u; }

static const real *triangle_of(const scene *s, int32_t i) { return s->x + 9 * (size_t)i; }

/* ------------------------------------------------------------------------------------------------
   Searches
   ---------------------------------------------------------------------------------------------- */

static void check_ray(const scene *s, const real *ray, real t_max, uint32_t filter,
                      const lbvh_ray_hit *hit, uint8_t any)
{
    real t, u, v, best_t = 0;
    int32_t i, best = -1;
    for (i = 0; i < s->n; i++) {
        const real *x = triangle_of(s, i);
        if (!counts(s, i) || !(mask_of(s, i) & filter)) continue;
        if (!lbvh_ray_triangle(ray, ray + 3, x, x + 3, x + 6, &t, &u, &v)) continue;
        if (!(t >= 0 && t <= t_max) || (best >= 0 && t >= best_t)) continue;
        best = i;
        best_t = t;
    }
    FZ_TRACE("ray: %d at %.9g, expected %d at %.9g", hit->id, (double)hit->t, best, (double)best_t);
    FZ_CHECK(hit->id == best && any == (best >= 0));
    FZ_CHECK(best < 0 || hit->t == best_t);
}

static void check_rays(fz *f, const scene *s)
{
    enum { RAYS = 24 };
    real data[6 * RAYS];
    lbvh_ray_hit hits[RAYS];
    uint8_t any[RAYS];
    lbvh_rays rays;
    int const c = fz_u8(f);
    int32_t r;
    int a;
    memset(&rays, 0, sizeof rays);
    rays.data = data;
    rays.n = RAYS;
    rays.flags = c & 1 ? LBVH_SORTED : 0;
    rays.filter = c & 2 ? (uint32_t)(c >> 5) : 0;
    rays.t_max = c & 4 ? 1 : 0;
    for (r = 0; r < RAYS; r++) for (a = 0; a < 3; a++) {
        real const from = any_place(f, s, 0), to = any_place(f, s, 0);
        data[6 * r + a] = r % 8 && (c & 8) ? data[6 * (r - 1) + a] : from;
        data[6 * r + 3 + a] = to - data[6 * r + a];
    }
    FZ_CHECK(lbvh_closest_hits(&s->wide, &rays, NULL, NULL, hits) == LBVH_OK);
    FZ_CHECK(lbvh_any_hits(&s->wide, &rays, NULL, NULL, any) == LBVH_OK);
    for (r = 0; r < RAYS && s->odd < 3; r++)
        check_ray(s, data + 6 * r, rays.t_max > 0 ? rays.t_max : FZ_MAX,
                  rays.filter ? rays.filter : ~0u, &hits[r], any[r]);
}

/* The squared distance from p to an element, as the wide tree measures it. */
static real away2(const scene *s, int32_t i, const real p[3], real q[3], lbvh_feature *feature)
{
    const real *x = s->x + (size_t)i * (size_t)s->numbers;
    lbvh_node box;
    if (s->wide.numbers == 9) {
        *feature = lbvh_closest_on_triangle(p, x, x + 3, x + 6, q);
        return lbvh_i_distance2(q, p);
    }
    (void)lbvh_box_of(&s->desc, s->x, (size_t)s->numbers * sizeof(real), i, box.min, box.max);
    return lbvh_box_distance2(&box, p);
}

static void check_around(fz *f, const scene *s)
{
    enum { K = 6 };
    real p[3] = {0, 0, 0}, q[3], distances2[K], own_distances2[K], reach2;
    real const reach = fz_below(f, 3) ? (real)1e9 : s->scale;
    int32_t i, ids[K], own[K], found, own_found = 0;
    lbvh_closest closest;
    lbvh_feature feature = LBVH_FACE;
    int a;
    for (a = 0; a < s->desc.dim; a++) p[a] = any_place(f, s, 0);
    FZ_CHECK(lbvh_wide_nearest(&s->wide, p, K, reach, NULL, NULL, ids, distances2, &found) ==
             LBVH_OK);
    if (s->wide.numbers == 9 && s->odd == 3) return;
    reach2 = lbvh_i_min(reach * reach, FZ_MAX);
    for (i = 0; i < s->n; i++) {
        if (!counts(s, i) || !mask_of(s, i)) continue;
        reach2 = lbvh_keep_nearest(own, own_distances2, K, &own_found, reach2, i,
                                   away2(s, i, p, q, &feature));
    }
    FZ_CHECK(found == own_found);
    for (i = 0; i < found; i++)
        FZ_CHECK(ids[i] == own[i] && distances2[i] == own_distances2[i]);
    if (s->wide.numbers != 9) return;
    FZ_CHECK(lbvh_closest_points(&s->wide, p, 0, 1, reach, &closest) == LBVH_OK);
    FZ_CHECK(closest.id == (found ? ids[0] : -1));
    if (!found) return;
    FZ_CHECK(away2(s, ids[0], p, q, &feature) == closest.distance2);
    FZ_CHECK(closest.feature == feature && memcmp(q, closest.point, sizeof q) == 0);
}

static void check_overlaps(fz *f, const scene *s)
{
    int32_t ids[4 * MOST], i;
    int64_t needed, k, again;
    uint32_t const filter = (uint32_t)fz_below(f, 8);
    int found[MOST] = {0}, a;
    int const dim = s->desc.dim;
    real box[6];
    for (a = 0; a < dim; a++) {
        box[a] = any_place(f, s, 0);
        box[dim + a] = box[a] + (real)(fz_roll(f, 9) / 2.0) * s->scale;
    }
    FZ_CHECK(lbvh_wide_overlaps(&s->wide, box, filter, ids, 4 * MOST, &needed) == LBVH_OK);
    FZ_CHECK(lbvh_wide_overlaps(&s->wide, box, filter, NULL, 0, &again) ==
             (needed ? LBVH_BUFFER_TOO_SMALL : LBVH_OK) && again == needed);
    for (k = 0; k < needed; k++) {
        FZ_CHECK(ids[k] >= 0 && ids[k] < s->n && !found[ids[k]]);
        found[ids[k]] = 1;
    }
    for (i = 0; i < s->n; i++) {
        real min[3], max[3];
        int touch = counts(s, i) && (mask_of(s, i) & (filter ? filter : ~0u));
        if (touch)
            (void)lbvh_box_of(&s->desc, s->x, (size_t)s->numbers * sizeof(real), i, min, max);
        for (a = 0; touch && a < dim; a++) touch = min[a] <= box[dim + a] && max[a] >= box[a];
        FZ_CHECK(s->wide.numbers ? found[i] == touch : found[i] >= touch);
    }
}

/* ------------------------------------------------------------------------------------------------
   Files
   ---------------------------------------------------------------------------------------------- */

/* Searches of a tree that may be forged: they end, in bounds. */
static void use(const lbvh_wide *wide)
{
    real const data[12] = {0, 0, 0, 1, 1, 1, 3, 2, 9, 0, 0, -1}, box[6] = {0, 0, 0, 9, 9, 9};
    real distances2[4];
    int32_t ids[4], found;
    int64_t needed;
    lbvh_ray_hit hits[2];
    lbvh_closest closest;
    lbvh_rays rays;
    memset(&rays, 0, sizeof rays);
    rays.data = data;
    rays.n = 2;
    FZ_CHECK(lbvh_wide_overlaps(wide, box, 0, ids, 4, &needed) != LBVH_BAD_ARGUMENT);
    FZ_CHECK(needed <= wide->elements);
    if (!wide->numbers) return;
    FZ_CHECK(lbvh_wide_nearest(wide, data, 4, 100, NULL, NULL, ids, distances2, &found) == LBVH_OK);
    if (wide->numbers != 9) return;
    FZ_CHECK(lbvh_closest_hits(wide, &rays, NULL, NULL, hits) == LBVH_OK);
    FZ_CHECK(lbvh_closest_points(wide, data, 0, 1, 100, &closest) == LBVH_OK);
}

/* FNV-1a over all, with zeros where the sum itself is. */
static void mend(uint8_t *bytes, int64_t size)
{
    uint64_t sum = 0xCBF29CE484222325u;
    int64_t k;
    memset(bytes + HEAD - 8, 0, 8);
    for (k = 0; k < size; k++) sum = (sum ^ bytes[k]) * 0x100000001B3u;
    memcpy(bytes + HEAD - 8, &sum, 8);
}

static void check_files(fz *f, scene *s)
{
    int64_t size, needed;
    int k, changes = fz_below(f, 6);
    uint8_t *bytes;
    lbvh_wide loaded;
    lbvh_result r;
    memset(&loaded, 0, sizeof loaded);
    FZ_CHECK(lbvh_wide_save(&s->wide, NULL, 0, &size) == LBVH_BUFFER_TOO_SMALL);
    bytes = (uint8_t *)fz_exactly((size_t)size);
    FZ_CHECK(lbvh_wide_save(&s->wide, bytes, size, &needed) == LBVH_OK && needed == size);
    FZ_CHECK(lbvh_wide_load(&loaded, &s->wide_desc, bytes, size) == LBVH_OK);
    FZ_CHECK(lbvh_wide_validate(&loaded, &s->tree) == LBVH_OK);
    for (k = 0; k < changes; k++) {
        int64_t const span = fz_u8(f) % 4 ? size : size < 4 * HEAD ? size : 4 * HEAD;
        int64_t const at = (int64_t)fz_u32(f) % span;
        if (fz_u8(f) & 1) bytes[at] ^= (uint8_t)(1 << fz_below(f, 8));
        else bytes[at] = (uint8_t)fz_u8(f);
    }
    mend(bytes, size);
    size -= fz_u8(f) > 240 ? 1 + fz_below(f, 60) : 0;
    s->heap.fail_at = fz_u8(f) > 240 ? s->heap.calls + 1 + fz_below(f, 3) : 0;
    s->heap.failed = 0;
    lbvh_wide_free(&loaded);
    r = lbvh_wide_load(&loaded, &s->wide_desc, bytes, size);
    FZ_CHECK_CODE(r == LBVH_OK || r == LBVH_BAD_FILE ||
                      (r == LBVH_OUT_OF_MEMORY && s->heap.failed), lbvh_result_text(r));
    FZ_CHECK(loaded.built == (r == LBVH_OK));
    if (r == LBVH_OK) {
        uint8_t *again = (uint8_t *)fz_exactly((size_t)size);
        use(&loaded);
        FZ_CHECK(lbvh_wide_save(&loaded, again, size, &needed) == LBVH_OK && needed == size);
        FZ_CHECK(memcmp(again, bytes, (size_t)size) == 0);
        free(again);
    }
    s->heap.fail_at = 0;
    lbvh_wide_free(&loaded);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static scene s;
    fz f = fz_of(data, size);
    lbvh_result r;
    int turn;
    any_scene(&f, &s);
    FZ_CHECK(lbvh_build(&s.tree, &s.desc, s.x, 0, s.n) == LBVH_OK);
    s.heap.fail_at = fz_u8(&f) > 240 ? 1 + fz_below(&f, 4) : 0;
    r = lbvh_wide_build(&s.wide, &s.wide_desc, &s.tree, s.x, 0);
    FZ_TRACE("n %d, dim %d, kind %d, copy %d: %s", s.n, s.desc.dim, (int)s.desc.kind,
             s.wide_desc.copy, lbvh_result_text(r));
    FZ_CHECK_CODE(r == LBVH_OK || (r == LBVH_OUT_OF_MEMORY && s.heap.failed), lbvh_result_text(r));
    s.heap.fail_at = 0;
    if (r != LBVH_OK) r = lbvh_wide_build(&s.wide, &s.wide_desc, &s.tree, s.x, 0);
    FZ_CHECK(r == LBVH_OK && lbvh_wide_validate(&s.wide, &s.tree) == LBVH_OK);
    for (turn = 0; turn < 3; turn++) {
        if (s.wide.numbers == 9) check_rays(&f, &s);
        if (s.wide.numbers) check_around(&f, &s);
        check_overlaps(&f, &s);
    }
    check_files(&f, &s);
    lbvh_wide_free(&s.wide);
    lbvh_free(&s.tree);
    FZ_CHECK(s.heap.blocks == 0);
    return 0;
}
