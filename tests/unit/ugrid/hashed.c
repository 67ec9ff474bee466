/* hashed.c - a part of test_ugrid.c: searches of hashed cells by strips of cells. Each row against
   the walk around its particle, name by name, and their number against brute force.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { H_EVEN, H_CLUSTERS, H_LATTICE, H_ONE_PLACE, H_OUTLIERS, H_NEGATIVE, H_ALONG_X, H_ALONG_Y,
    H_KINDS };

/* n points. */
static void hashed_points(real *p, int kind, int dim, int32_t n)
{
    real centre[3] = {0, 0, 0};
    int32_t i;
    int a;
    for (i = 0; i < n; i++)
        for (a = 0; a < dim; a++) {
            real x = between(0, 1);
            if (i % 40 == 0) centre[a] = between(-100, 100);
            if (kind == H_CLUSTERS) x = centre[a] + x / 2;
            if (kind == H_LATTICE) x = (real)(int)(x * 12) / 16;
            if (kind == H_ONE_PLACE) x = (real)0.25;
            if (kind == H_OUTLIERS && i % 50 == 0) x = between(-100000, 100000);
            if (kind == H_NEGATIVE) x = -3 * x;
            if (kind == H_ALONG_X) x *= a == 0 ? 20 : (real)0.1;
            if (kind == H_ALONG_Y) x *= a == 1 ? 20 : (real)0.1;
            p[dim * i + a] = x;
        }
}

/* The row of a place by its walk: names of those within the radius. */
static int32_t row_by_walk(const ugrid *g, int32_t place, real radius, int flags, int32_t *names)
{
    ugrid_near walk = flags & UGRID_HALF ? ugrid_near_half(g, place, radius)
                                         : ugrid_near_place(g, place, radius);
    real p[3], q[3];
    int32_t count = 0;
    if (ugrid_id(g, place) >= g->rows) return 0;
    ugrid_point(g, place, p);
    while (ugrid_next(&walk)) {
        ugrid_point(g, walk.place, q);
        if (ugrid_distance2(g, p, q) > radius * radius) continue;
        names[count++] = flags & UGRID_PLACES ? walk.place : walk.id;
    }
    return count;
}

/* Pairs of a row and a neighbour, by brute force. */
static int64_t hashed_pairs(const ugrid *g, const real *p, real radius, int half)
{
    int64_t pairs = 0;
    int32_t i, j;
    int const dim = g->desc.dim;
    for (i = 0; i < g->rows; i++)
        for (j = 0; j < g->n; j++) {
            real const z = dim == 3 ? p[dim * j + 2] - p[dim * i + 2] : 0,
                       x = p[dim * j] - p[dim * i], y = p[dim * j + 1] - p[dim * i + 1];
            if (i == j || (half && j < i)) continue; /* ghosts have the higher ids */
            pairs += x * x + y * y + z * z <= radius * radius;
        }
    return pairs;
}

static void check_hashed(const ugrid *g, const real *p, real radius, int flags)
{
    int32_t const n = g->n, rows = flags & UGRID_PLACES ? n : g->rows, room = n * n;
    int64_t *offsets = NEW(int64_t, n + 1), needed = 0;
    int32_t *ids = NEW(int32_t, room), *names = NEW(int32_t, n), *counts = NEW(int32_t, n), place;
    CHECK_RESULT(ugrid_count_neighbors(g, radius, flags, counts), UGRID_OK);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, ids, room, &needed),
                 UGRID_OK);
    CHECK(needed == hashed_pairs(g, p, radius, flags & UGRID_HALF) && offsets[rows] == needed);
    for (place = 0; place < n; place++) {
        int32_t const row = flags & UGRID_PLACES ? place : ugrid_id(g, place),
                      count = row_by_walk(g, place, radius, flags, names);
        if (row >= rows) continue;
        CHECK(count == offsets[row + 1] - offsets[row] && count == counts[row]);
        CHECK(count == 0 || !memcmp(names, ids + offsets[row], (size_t)count * sizeof *names));
    }
    CHECK_RESULT(ugrid_neighbors_at(g, p, 0, n, radius, offsets, ids, 0, &needed),
                 needed > 0 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
    if (g->rows == n && !(flags & UGRID_HALF)) CHECK(needed == n + hashed_pairs(g, p, radius, 0));
    free(offsets);
    free(ids);
    free(names);
    free(counts);
}

/* All kinds of points, many and few buckets, radii below and above a cell, ghosts, both types of
   rows. */
static void test_hashed(void **state)
{
    int32_t const most = 600;
    real *p = NEW(real, 3 * most);
    int kind, dim, turn;
    (void)state;
    dice = wl_seed(28);
    for (kind = 0; kind < H_KINDS; kind++) for (dim = 2; dim <= 3; dim++)
        for (turn = 0; turn < 4; turn++) {
            int32_t const n = turn == 3 ? most : most / 4;
            ugrid g = {0};
            ugrid_desc d;
            int flags;
            memset(&d, 0, sizeof d);
            d.dim = dim;
            d.unbounded = 1;
            d.cell = kind == H_EVEN ? (real)0.2 : (real)0.3;
            d.method = turn % 2 ? UGRID_SORT : UGRID_COUNT;
            if (turn == 1) d.buckets = 32;
            if (turn == 2) d.rows = n / 2;
            hashed_points(p, kind, dim, n);
            CHECK_RESULT(ugrid_build(&g, &d, p, 0, n), UGRID_OK);
            for (flags = 0; flags < 4; flags++)
                check_hashed(&g, p, d.cell * (turn == 0 ? (real)1.9 : 1),
                             (flags & 1 ? UGRID_HALF : 0) | (flags & 2 ? UGRID_PLACES : 0));
            ugrid_free(&g);
        }
    free(p);
}

/* ugrid_query_box of a box that is long in x: each particle in it once. */
static void check_box_of_pieces(const ugrid *g, const real *p)
{
    int const dim = g->desc.dim;
    real box[6] = {-UGRID_I_ROW_PIECE - 2, -1, -1, 1, 1, 1};  /* least, largest */
    uint8_t *met = NEW(uint8_t, g->n);
    int32_t *ids = NEW(int32_t, g->n), found, i;
    int a;
    memset(met, 0, (size_t)g->n);
    if (dim == 2) box[2] = 1;
    CHECK_RESULT(ugrid_query_box(g, box, ids, g->n, &found), UGRID_OK);
    for (i = 0; i < found; i++) met[ids[i]]++;
    for (i = 0; i < g->n; i++) {
        int in = 1;
        for (a = 0; a < dim; a++)
            in &= p[dim * i + a] >= box[a] && p[dim * i + a] <= box[dim + a];
        CHECK(met[i] == in);
    }
    free(ids);
    free(met);
}

/* Points about the ends of pieces of rows, in a few rows: cells of edge 1, below and above 0. */
static void points_at_piece_ends(real *p, int dim, int32_t n)
{
    int32_t i;
    int a;
    for (i = 0; i < n; i++)
        for (a = 0; a < dim; a++) {
            int32_t const cell = roll(5) - 3 + (a == 0 ? (roll(5) - 2) * UGRID_I_ROW_PIECE : 0);
            p[dim * i + a] = (real)cell + (real)roll(8) / 8; /* exact */
        }
}

/* Strips that cross the ends of pieces and of the table, radii of less than a cell to several,
   tables so small that the pieces of a row share buckets. Names against brute force. */
static void test_hashed_pieces(void **state)
{
    static const int32_t buckets[] = {1, 4, 16, 64, 128, 4096, 0};
    static const double radii[] = {0.5, 1, 1.875, 3.5};
    static const ugrid_method methods[] = {UGRID_SORT, UGRID_COUNT, UGRID_LIST};
    int32_t const n = 100;
    real *p = NEW(real, 3 * n);
    int turn;
    (void)state;
    dice = wl_seed(29);
    for (turn = 0; turn < 3 * 2 * 4 * COUNT_OF(buckets); turn++) {
        int const dim = 2 + turn % 2, rest = turn / 2;
        real const radius = (real)radii[rest % 4];
        ugrid g = {0};
        ugrid_desc d;
        memset(&d, 0, sizeof d);
        d.dim = dim;
        d.unbounded = 1;
        d.cell = 1;
        d.buckets = buckets[rest / 4 % COUNT_OF(buckets)];
        d.method = methods[rest / 4 / COUNT_OF(buckets)];
        points_at_piece_ends(p, dim, n);
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, n), UGRID_OK);
        check_hashed(&g, p, radius, 0);
        check_hashed(&g, p, radius, UGRID_HALF);
        check_box_of_pieces(&g, p);
        ugrid_free(&g);
    }
    free(p);
}

/* More candidates than a block has room for: pieces. */
static void test_hashed_crowd(void **state)
{
    int32_t const n = 4500;
    real *p = NEW(real, 3 * n);
    int64_t pairs = 0;
    int32_t *counts = NEW(int32_t, n), i;
    ugrid g = {0};
    ugrid_desc d;
    (void)state;
    memset(&d, 0, sizeof d);
    d.unbounded = 1;
    d.cell = 1;
    for (i = 0; i < 3 * n; i++) p[i] = (real)(i % 3 == 0 && i / 3 % 9 == 8 ? 0.75 : 0.5);
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, n), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&g, 1, &pairs), UGRID_OK);
    CHECK(pairs == (int64_t)n * (n - 1) / 2);
    CHECK_RESULT(ugrid_count_neighbors(&g, (real)0.125, 0, counts), UGRID_OK);
    for (i = 0; i < n; i++) CHECK(counts[i] == (i % 9 == 8 ? n / 9 : n - n / 9) - 1);
    ugrid_free(&g);
    free(counts);
    free(p);
}
