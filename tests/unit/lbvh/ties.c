/* ties.c - a part of test_lbvh.c: the k nearest where many are as far away, and for large k: the
   answer of a sort, by few calls of the distance function.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { ONE_PLACE, TWENTY_PLACES, CUBES, EQUAL_SPHERES, ANYWHERE, TIE_SCENES };

typedef struct tie_scene {
    int kind;
    int32_t n, calls;
    real *data, *box; /* n * 4: a sphere; n * 6 */
    lbvh tree;
} tie_scene;

static void put_ties(tie_scene *s, int kind, int32_t n)
{
    int const edge = 24;
    real place[20][3];
    int32_t i;
    int x;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->n = n;
    s->data = (real *)malloc(4 * (size_t)n * sizeof(real));
    s->box = (real *)malloc(6 * (size_t)n * sizeof(real));
    for (i = 0; i < 60; i++) place[i / 3][i % 3] = between(0, 1);
    for (i = 0; i < n; i++) {
        int32_t const site = kind == TWENTY_PLACES ? roll(20) : 0;
        int32_t const at[3] = {i % edge, i / edge % edge, i / edge / edge};
        for (x = 0; x < 3; x++)
            s->data[4 * i + x] = kind == CUBES ? (real)at[x] : kind == ANYWHERE ? between(0, 1)
                                                                             : place[site][x];
        s->data[4 * i + 3] = kind == EQUAL_SPHERES ? (real)0.5 : 0;
    }
}

static void build_ties(tie_scene *s, lbvh_builder builder, int bits)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_SPHERES;
    desc.builder = builder;
    desc.bits = bits;
    CHECK_RESULT(lbvh_build(&s->tree, &desc, s->data, 0, s->n), LBVH_OK);
    CHECK_RESULT(lbvh_boxes(&desc, s->data, 0, s->n, s->box, NULL), LBVH_OK);
}

static real tie_distance2(void *user, int32_t id, const real *p)
{
    tie_scene *s = (tie_scene *)user;
    const real *box = s->box + 6 * (size_t)id;
    lbvh_node node;
    int x;
    s->calls++;
    for (x = 0; x < 3; x++) node.min[x] = box[x], node.max[x] = box[3 + x];
    return lbvh_box_distance2(&node, p);
}

typedef struct tie { real distance2; int32_t id; } tie;

static int compare_ties(const void *a, const void *b)
{
    const tie *p = (const tie *)a, *q = (const tie *)b;
    if (p->distance2 != q->distance2) return p->distance2 < q->distance2 ? -1 : 1;
    return p->id < q->id ? -1 : p->id > q->id;
}

/* A search, with the caller's distance and without: the sorted answer. Returns the calls. */
static int32_t check_ties(tie_scene *s, const real *p, int32_t k, real reach)
{
    tie *all = (tie *)malloc((size_t)s->n * sizeof(tie));
    int32_t *ids = (int32_t *)malloc((size_t)k * sizeof(int32_t));
    real *d2 = (real *)malloc((size_t)k * sizeof(real));
    int32_t i, want = 0, found = -1, calls = 0;
    int own;
    for (i = 0; i < s->n; i++) {
        all[want].distance2 = tie_distance2(s, i, p);
        all[want].id = i;
        want += all[want].distance2 <= reach * reach;
    }
    qsort(all, (size_t)want, sizeof *all, compare_ties);
    if (want > k) want = k;
    for (own = 0; own < 2; own++) {
        s->calls = 0;
        CHECK_RESULT(lbvh_nearest(&s->tree, p, k, reach, own ? tie_distance2 : NULL, s, ids, d2,
                                  &found), LBVH_OK);
        calls = s->calls;
        CHECK(found == want);
        for (i = 0; i < want; i++) CHECK(ids[i] == all[i].id && d2[i] == all[i].distance2);
    }
    free(all);
    free(ids);
    free(d2);
    return calls;
}

static void free_ties(tie_scene *s)
{
    lbvh_free(&s->tree);
    free(s->data);
    free(s->box);
}

/* Few visits, whatever the number of elements that are as far away as the last one. */
static void test_nearest_ties(void **state)
{
    static const lbvh_builder builders[] = {LBVH_MERGE, LBVH_SPLIT, LBVH_PLOC};
    static const int32_t many[] = {1, 2, 8, 40};
    int32_t const n = small_run() ? 2000 : 13824;
    int kind, b, k, bits;
    (void)state;
    dice = wl_seed(27);
    for (kind = 0; kind < ANYWHERE; kind++) {
        tie_scene s;
        put_ties(&s, kind, n);
        for (b = 0; b < 3; b++) for (bits = 30; bits <= 63; bits += 33) {
            build_ties(&s, builders[b], bits);
            for (k = 0; k < 4; k++) {
                real const far[3] = {3, 2, 1}, middle[3] = {(real)11.5, (real)11.5, (real)1.5};
                int32_t const calls = check_ties(&s, kind == CUBES ? middle : far, many[k],
                                                 k % 2 ? REAL_INFINITY : 100);
                if (kind == EQUAL_SPHERES && builders[b] == LBVH_PLOC) continue;
                if (calls > 3 * many[k] + 100) print_error("scene %d, builder %d: %d\n", kind, b,
                                                           (int)calls);
                CHECK(calls <= 3 * many[k] + 100);
            }
        }
        free_ties(&s);
    }
}

/* The order of ids is as before in trees that were refitted, rotated or loaded. */
static void test_nearest_ties_later(void **state)
{
    int round, b, kind;
    (void)state;
    dice = wl_seed(28);
    for (round = 0; round < 40 / share() + 8; round++) for (b = 0; b < 3; b++) {
        real const p[3] = {between(0, 1), between(0, 1), between(0, 1)};
        tie_scene s, moved;
        int64_t size = 0;
        void *bytes;
        put_ties(&s, round % 2 ? ANYWHERE : TWENTY_PLACES, 200 + roll(200));
        build_ties(&s, (lbvh_builder)b, round % 3 ? 63 : 30);
        kind = round % 4 < 2 ? ONE_PLACE : TWENTY_PLACES;
        put_ties(&moved, kind, s.n); /* elements that lay apart come together */
        if (round % 4) memcpy(s.data, moved.data, 4 * (size_t)s.n * sizeof(real));
        CHECK_RESULT(lbvh_refit(&s.tree, s.data, 0), LBVH_OK);
        CHECK_RESULT(lbvh_boxes(&s.tree.desc, s.data, 0, s.n, s.box, NULL), LBVH_OK);
        (void)check_ties(&s, p, 1 + roll(20), REAL_INFINITY);
        CHECK_RESULT(lbvh_save(&s.tree, NULL, 0, &size), LBVH_BUFFER_TOO_SMALL);
        bytes = malloc((size_t)size);
        CHECK_RESULT(lbvh_save(&s.tree, bytes, size, &size), LBVH_OK);
        if (round % 2) CHECK_RESULT(lbvh_optimize(&s.tree, NULL), LBVH_OK);
        else CHECK_RESULT(lbvh_split_top(&s.tree, NULL), LBVH_OK);
        (void)check_ties(&s, p, 1 + roll(20), REAL_INFINITY);
        CHECK_RESULT(lbvh_load(&s.tree, NULL, bytes, size), LBVH_OK);
        (void)check_ties(&s, p, 1 + roll(20), REAL_INFINITY);
        free(bytes);
        free_ties(&s);
        free_ties(&moved);
    }
}

/* More than a few: by a heap. */
static void test_nearest_many(void **state)
{
    int round;
    (void)state;
    dice = wl_seed(29);
    for (round = 0; round < 12; round++) {
        real const p[3] = {between(0, 1), between(0, 1), between(0, 1)};
        tie_scene s;
        put_ties(&s, round % TIE_SCENES, 1500);
        build_ties(&s, LBVH_MERGE, 63);
        (void)check_ties(&s, p, round % 4 == 0 ? 257 : 200 + roll(1500),
                         round % 3 ? REAL_INFINITY : (real)0.6);
        free_ties(&s);
    }
}
