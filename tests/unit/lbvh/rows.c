/* rows.c - a part of test_lbvh.c: lbvh_nearest_rows against lbvh_nearest, point by point.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { ROWS_MOST = 700, ROWS_K = 12 };

typedef struct rows {
    int32_t id[ROWS_MOST * ROWS_K], found[ROWS_MOST];
    real d2[ROWS_MOST * ROWS_K];
} rows;

/* Points in no order, `width` numbers apart; some of them are no points. */
static void scatter_points(real *p, int32_t m, int dim, int width)
{
    int32_t q;
    int a;
    for (q = 0; q < m * width; q++) p[q] = REAL_NAN;
    for (q = 0; q < m; q++) for (a = 0; a < dim; a++)
        p[width * q + a] = q % 19 == 7 ? REAL_INFINITY : between((real)-0.5, (real)1.5);
    for (q = 5; q < m; q += 23) p[width * q + q % dim] = REAL_NAN;
}

/* Nothing is written behind the last row. */
static void check_nearest_rows(const lbvh *tree, const real *p, int width, int32_t m, int32_t k,
                               real reach, int flags)
{
    rows *const got = NEW(rows, 1);
    int32_t id[ROWS_K], found, q, e;
    real d2[ROWS_K];
    memset(got, 0x55, sizeof *got);
    CHECK_RESULT(lbvh_nearest_rows(tree, p, (size_t)width * sizeof *p, m, k, reach, flags,
                                   k ? got->id : NULL, k ? got->d2 : NULL, got->found), LBVH_OK);
    for (q = 0; q < m; q++) {
        CHECK_RESULT(lbvh_nearest(tree, p + width * q, k, reach, NULL, NULL, id, d2, &found),
                     LBVH_OK);
        CHECK(got->found[q] == found);
        for (e = found; e < k; e++) id[e] = -1, d2[e] = REAL_INFINITY;
        CHECK(!memcmp(id, got->id + k * q, (size_t)k * sizeof *id));
        CHECK(!memcmp(d2, got->d2 + k * q, (size_t)k * sizeof *d2));
    }
    for (e = m * k; e < m * k + 3; e++) CHECK(got->id[e] == 0x55555555);
    for (q = m; q < m + 3; q++) CHECK(got->found[q] == 0x55555555);
    free(got);
}

static void test_nearest_rows(void **state)
{
    static const int32_t sizes[] = {0, 1, 2, 50, 600}, counts[] = {0, 1, 2, 9, 600},
                         most[] = {0, 1, 8, ROWS_K};
    static const real reaches[] = {REAL_INFINITY, (real)0.2, 0};
    static real data[4 * ROWS_MOST], p[4 * ROWS_MOST];
    lbvh tree = {0};
    int32_t n, m, turn;
    int i, j;
    (void)state;
    for (turn = 0; turn < 3; turn++) {
        lbvh_desc d = {0};
        int const dim = turn % 2 ? 2 : 3, width = dim + turn / 2;
        d.dim = dim;
        d.kind = LBVH_POINTS;
        d.radius = (real)0.01;
        d.bits = turn ? 0 : 30;
        for (i = 0; i < COUNT_OF(sizes); i++) for (j = 0; j < COUNT_OF(counts); j++) {
            n = sizes[i];
            m = counts[j];
            for (int32_t e = 0; e < dim * n; e++) data[e] = (real)roll(64) / 64; /* equal ones */
            scatter_points(p, m, dim, width);
            CHECK_RESULT(lbvh_build(&tree, &d, data, 0, n), LBVH_OK);
            for (int which = 0; which < 4 * 3 * 2; which++)
                check_nearest_rows(&tree, p, width, m, most[which % 4], reaches[which / 4 % 3],
                                   which / 12 ? LBVH_SORTED : 0);
        }
    }
    lbvh_free(&tree);
}

/* Row by row, and all rows at once: a sort of all distances. */
static void check_nearest_sorted(const lbvh *tree, const real *box, const real *p, int32_t k,
                                 real reach)
{
    int32_t const n = tree->n + 1, m = 24, most = k > 0 ? k : 1;
    tie *const all = NEW(tie, n);
    int32_t *const ids = NEW(int32_t, m * most), found[24], row, e, want;
    real *const d2 = NEW(real, m * most);
    CHECK_RESULT(lbvh_nearest_rows(tree, p, 3 * sizeof *p, m, k, reach, 0, ids, d2, found),
                 LBVH_OK);
    for (row = 0; row < m; row++) {
        int32_t alone = -1;
        for (e = 0, want = 0; e < tree->n; e++) {
            lbvh_node node;
            real const at[3] = {p[3 * row], p[3 * row + 1], tree->desc.dim == 3 ? p[3 * row + 2]
                                                                                 : 0};
            memset(&node, 0, sizeof node);
            memcpy(node.min, box + 6 * e, sizeof node.min);
            memcpy(node.max, box + 6 * e + 3, sizeof node.max);
            all[want].id = e;
            all[want].distance2 = lbvh_box_distance2(&node, at);
            want += all[want].distance2 <= reach * reach &&
                    all[want].distance2 < REAL_INFINITY;
        }
        qsort(all, (size_t)want, sizeof *all, compare_ties);
        if (want > k) want = k;
        CHECK(found[row] == want);
        for (e = 0; e < want; e++)
            CHECK(ids[k * row + e] == all[e].id && d2[k * row + e] == all[e].distance2);
        CHECK_RESULT(lbvh_nearest(tree, p + 3 * row, k, reach, NULL, NULL, ids, d2, &alone),
                     LBVH_OK);
        CHECK(alone == want);
        for (e = 0; e < want; e++) CHECK(ids[e] == all[e].id && d2[e] == all[e].distance2);
        if (row + 1 < m) /* (the row of another point stood there) */
            CHECK_RESULT(lbvh_nearest_rows(tree, p, 3 * sizeof *p, m, k, reach, LBVH_SORTED, ids,
                                           d2, found), LBVH_OK);
    }
    free(all);
    free(ids);
    free(d2);
}

/* Points and boxes that are scattered, on a lattice, at one point, in two tight clusters; some are
   left out; searched from all places of a stack of runs: also after a refit that mixes them. */
static void test_nearest_runs(void **state)
{
    static const int32_t sizes[] = {1, 8, 9, 17, 40, 700},
                         most[] = {1, 2, 3, 8, 9, 33, 64, 65, 257, 900};
    static real data[6 * ROWS_MOST], p[3 * 24];
    lbvh tree = {0};
    int turn, i;
    (void)state;
    dice = wl_seed(29);
    for (turn = 0; turn < (small_run() ? 12 : 24); turn++) for (i = 0; i < COUNT_OF(sizes); i++) {
        int32_t const n = sizes[i];
        int const shape = turn % 4, dim = turn % 3 == 1 ? 2 : 3, boxes = turn / 4 % 2;
        lbvh_desc d = {0};
        int32_t e;
        int a;
        d.dim = dim;
        d.skip_invalid = 1;
        d.builder = turn / 8 % 3 == 2 ? LBVH_PLOC : LBVH_MERGE;
        for (int again = 0; again < 2; again++) {
            for (e = 0; e < n; e++) for (a = 0; a < 3; a++) {
                real const x = shape == 0 ? between(0, 1)
                             : shape == 1 ? (real)roll(5)
                             : shape == 2 ? 1 : between(0, (real)0.01) + (real)(e % 2 * 50);
                real const width = boxes ? between(0, (real)0.1) : 0;
                data[6 * e + a] = a < dim ? x : 0;
                data[6 * e + 3 + a] = a < dim ? x + width : 0;
                if (e % 31 == 30 && a == 0) {
                    data[6 * e] = REAL_INFINITY;
                    data[6 * e + 3] = -REAL_INFINITY;
                }
            }
            for (e = 0; e < 24; e++) for (a = 0; a < 3; a++)
                p[3 * e + a] = e % 3 ? data[6 * (e % n) + a] : between(-1, 3);
            for (e = 0; e < 24 * 3; e++) if (!(p[e] < 1000)) p[e] = 2;
            if (dim == 2) for (e = 0; e < n; e++) { /* 4 numbers of 6 */
                data[6 * e + 2] = data[6 * e + 3];
                data[6 * e + 3] = data[6 * e + 4];
            }
            if (!again) CHECK_RESULT(lbvh_build(&tree, &d, data, 6 * sizeof *data, n), LBVH_OK);
            else CHECK_RESULT(lbvh_refit(&tree, data, 6 * sizeof *data), LBVH_OK);
            if (dim == 2) for (e = 0; e < n; e++) {
                data[6 * e + 4] = data[6 * e + 3];
                data[6 * e + 3] = data[6 * e + 2];
                data[6 * e + 2] = data[6 * e + 5] = 0;
            }
            check_nearest_sorted(&tree, data, p, most[(turn + i) % COUNT_OF(most)],
                                 turn % 5 ? REAL_INFINITY : (real)0.5);
        }
    }
    lbvh_free(&tree);
}

/* The nearest element and the next one, of rows and alone, against all elements. */
static void check_nearest_two(const lbvh *tree, const real *box, const uint32_t *mask,
                              const real *p, int32_t m, real reach)
{
    int const dim = tree->desc.dim;
    int32_t ids[2 * 16], found[16], id[2], alone, k, q, e, want;
    real d2[2 * 16], away2[2];
    for (k = 1; k <= 2; k++) {
        CHECK_RESULT(lbvh_nearest_rows(tree, p, 3 * sizeof *p, m, k, reach, k % 2 ? LBVH_SORTED : 0,
                                       ids, d2, found), LBVH_OK);
        for (q = 0; q < m; q++) {
            real const at[3] = {p[3 * q], p[3 * q + 1], dim == 3 ? p[3 * q + 2] : 0};
            tie best[3];
            for (e = want = 0; e < tree->n; e++) {
                lbvh_node node;
                tie t;
                memset(&node, 0, sizeof node);
                memcpy(node.min, box + 2 * dim * e, (size_t)dim * sizeof *box);
                memcpy(node.max, box + 2 * dim * e + dim, (size_t)dim * sizeof *box);
                t.id = e;
                t.distance2 = lbvh_box_distance2(&node, at);
                if (!(t.distance2 <= reach * reach) || !(t.distance2 < REAL_INFINITY)) continue;
                if (mask && !mask[e]) continue;
                best[want++] = t;
                qsort(best, (size_t)want, sizeof *best, compare_ties);
                if (want > k) want = k;
            }
            if (!(fabs((double)(0 * at[0] + 0 * at[1] + 0 * at[2])) <= 0)) want = 0;
            CHECK_RESULT(lbvh_nearest(tree, at, k, reach, NULL, NULL, id, away2, &alone), LBVH_OK);
            CHECK(alone == want && found[q] == want);
            for (e = 0; e < want; e++) {
                CHECK(id[e] == best[e].id && away2[e] == best[e].distance2);
                CHECK(ids[k * q + e] == id[e] && d2[k * q + e] == away2[e]);
            }
        }
    }
}

/* A coordinate: anywhere, on a lattice, at one point, far, hardly above 0, ever closer to 0. */
static real near_coordinate(int shape)
{
    real const least = (real)(IS_FLOAT ? 1.5e-45 : 5e-324);
    if (shape == 1) return (real)roll(5);
    if (shape == 2) return 1;
    if (shape == 3) return between(-1, 1) * REAL_LARGEST;
    if (shape == 4) return (real)roll(9) * least;
    if (shape == 5) return (real)pow(2, -roll(60));
    return between(0, 1);
}

/* Elements of stride 6, also some that are none. */
static void put_near(const lbvh_desc *d, int shape, real *data, int32_t n)
{
    int32_t e;
    int a;
    for (e = 0; e < n; e++) for (a = 0; a < d->dim; a++) {
        real const x = near_coordinate(shape);
        data[6 * e + a] = e % 31 == 30 ? REAL_NAN : x;
        if (d->kind == LBVH_BOXES) data[6 * e + d->dim + a] = x;
    }
    for (e = 0; e < n && d->kind == LBVH_BOXES; e += 3) data[6 * e + d->dim] += (real)0.1;
}

/* Whatever was done with a tree: ways by codes (tree.coded) and runs of points find the same. */
static void test_nearest_two(void **state)
{
    static const int32_t sizes[] = {0, 1, 2, 15, 16, 17, 33, 100, 300};
    static const real reaches[] = {REAL_INFINITY, REAL_INFINITY, 1, 0};
    static real data[6 * 300], box[6 * 300];
    static uint32_t masks[300];
    lbvh tree = {0}, same;
    int round;
    (void)state;
    dice = wl_seed(30);
    for (round = 0; round < 240; round++) {
        int32_t const n = sizes[round % COUNT_OF(sizes)];
        int const shape = roll(6), step = roll(6);
        lbvh_desc d = {0};
        real p[3 * 16];
        int32_t e;
        d.dim = 2 + roll(2);
        d.bits = roll(2) ? 30 : 63;
        d.kind = roll(3) ? LBVH_POINTS : LBVH_BOXES;
        d.radius = roll(4) || d.kind == LBVH_BOXES ? (real)0 : (real)0.01;
        d.builder = (lbvh_builder)(roll(2) ? roll(3) : (int)LBVH_MERGE);
        d.skip_invalid = 1;
        d.masks = roll(8) ? NULL : masks;
        for (e = 0; e < n; e++) masks[e] = (uint32_t)roll(4);
        put_near(&d, shape, data, n);
        CHECK_RESULT(lbvh_build(&tree, &d, data, 6 * sizeof *data, n), LBVH_OK);
        if (shape < 2) CHECK(tree.coded == (d.builder != LBVH_PLOC));
        if (step == 1) {
            put_near(&d, roll(6), data, n);
            CHECK_RESULT(lbvh_refit(&tree, data, 6 * sizeof *data), LBVH_OK);
        }
        if (step == 2) CHECK_RESULT(lbvh_optimize(&tree, NULL), LBVH_OK);
        if (step == 3) CHECK_RESULT(lbvh_split_top(&tree, NULL), LBVH_OK);
        if (step == 4) {
            int64_t size = 0;
            void *bytes;
            CHECK_RESULT(lbvh_save(&tree, NULL, 0, &size), LBVH_BUFFER_TOO_SMALL);
            bytes = malloc((size_t)size);
            CHECK_RESULT(lbvh_save(&tree, bytes, size, &size), LBVH_OK);
            CHECK_RESULT(lbvh_load(&tree, NULL, bytes, size), LBVH_OK);
            free(bytes);
        }
        CHECK(!tree.coded || (step != 1 && step != 4 && !tree.mixed));
        if (n) CHECK_RESULT(lbvh_boxes(&d, data, 6 * sizeof *data, n, box, NULL), LBVH_OK);
        for (e = 0; e < 3 * 16; e++) {
            int const q = e / 3;
            p[e] = q < 4 ? between(-1, 3) : near_coordinate(q < 10 ? shape : q - 10);
            if (q >= 6 && q < 10 && n) p[e] = box[2 * d.dim * (q * 7 % n) + e % 3];
        }
        p[3 * 5 + roll(2)] = roll(2) ? REAL_NAN : -REAL_INFINITY;
        p[3 * 4] = roll(2) ? REAL_LARGEST : -REAL_LARGEST;
        same = tree;
        check_nearest_two(&same, box, d.masks, p, 16, reaches[roll(4)]);
    }
    data[0] = REAL_NAN;
    CHECK_RESULT(lbvh_build(&tree, NULL, data, 0, 9), LBVH_NOT_FINITE);
    CHECK(!tree.coded);
    lbvh_free(&tree);
}

/* The order takes memory, and is given up where there is none. */
static void test_nearest_rows_memory(void **state)
{
    static real data[3 * ROWS_MOST], p[3 * ROWS_MOST];
    heap h = {0, 0, 0, 0, 0, 0};
    rows *const got = NEW(rows, 1);
    lbvh tree = {0};
    lbvh_desc d = {0};
    int64_t calls;
    (void)state;
#ifdef LBVH_PLAIN
    skip(); /* there is no order */
#endif
    scatter_points(p, 600, 3, 3);
    for (int32_t e = 0; e < 3 * 600; e++) data[e] = between(0, 1);
    d.kind = LBVH_POINTS;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(lbvh_build(&tree, &d, data, 0, 600), LBVH_OK);
    calls = h.calls;
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 600, 3, 1, LBVH_SORTED, got->id, got->d2,
                                   got->found), LBVH_OK);
    CHECK(h.calls == calls);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 600, 3, 1, 0, got->id, got->d2, got->found),
                 LBVH_OK);
    CHECK(h.calls == calls + 1);
    h.fail_at = h.calls + 1;
    check_nearest_rows(&tree, p, 3, 600, 3, 1, 0);
    CHECK(h.calls == calls + 2);
    lbvh_free(&tree);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(got);
}

static void test_nearest_rows_refused(void **state)
{
    static const real p[6] = {0, 0, 0, 1, 1, 1};
    int32_t ids[4] = {7, 7, 7, 7}, found[2] = {7, 7};
    real d2[4];
    size_t const step = sizeof *p;
    lbvh tree = {0};
    (void)state;
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, 1, 0, ids, d2, found), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_build(&tree, NULL, two_boxes, 0, 2), LBVH_OK);
    CHECK_RESULT(lbvh_nearest_rows(NULL, p, 0, 2, 2, 1, 0, ids, d2, found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, NULL, 0, 2, 2, 1, 0, ids, d2, found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, -1, 2, 1, 0, ids, d2, found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, -1, 1, 0, ids, d2, found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, 1, 0, NULL, d2, found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, 1, 0, ids, NULL, found), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, 1, 0, ids, d2, NULL), LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 2 * step, 2, 2, 1, 0, ids, d2, found),
                 LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 3 * step + 1, 2, 2, 1, 0, ids, d2, found),
                 LBVH_BAD_ARGUMENT);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, 1, LBVH_HALF, ids, d2, found),
                 LBVH_BAD_OPTION);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, -1, 0, ids, d2, found), LBVH_BAD_RADIUS);
    CHECK_RESULT(lbvh_nearest_rows(&tree, p, 0, 2, 2, REAL_NAN, 0, ids, d2, found),
                 LBVH_BAD_RADIUS);
    CHECK(ids[0] == 7 && found[0] == 7 && found[1] == 7);
    CHECK_RESULT(lbvh_nearest_rows(&tree, NULL, 0, 0, 2, 1, 0, NULL, NULL, NULL), LBVH_OK);
    lbvh_free(&tree);
}
