/* test_nlist_rows.c - desc.rows of ugrid.h and nlist.h: locals have rows, ghosts are partners only.
   SPDX-License-Identifier: MIT OR Unlicense

   The oracle is brute force in double (nlist_oracle.h): which particles are neighbours, and this
   rule for the row. Full: the row of every local.
   Half: that of the local; of two locals, in nlist.h that of the lower name, in ugrid.h one of the
   two. The order within a row is that
   of a list of all particles without the partners that do not belong there. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

enum { MOST = 160 };

/* The rows that desc.rows asks for. */
static int32_t rows_of(int32_t asked, int32_t n) { return asked < 0 ? 0 : asked == 0 ? n : asked; }

static int truth_of(const oracle_scene *s, int32_t i, int32_t j)
{
    return s->truth[(size_t)i * (size_t)s->n + (size_t)j];
}

/* Every local row has what it must have, no ghost has a row. name: decides between
   two locals; NULL: either has it. */
static void check_met(const oracle_scene *s, const uint8_t *met, int32_t rows, int half,
                      const int32_t *name)
{
    int32_t i, j;
    for (i = 0; i < s->n; i++) {
        for (j = 0; j < s->n; j++) {
            int const here = met[(size_t)i * (size_t)s->n + (size_t)j],
                      there = met[(size_t)j * (size_t)s->n + (size_t)i];
            int const truth = truth_of(s, i, j);
            CHECK(here <= 1 && (!here || (i < rows && truth != ORACLE_OUTSIDE)));
            if (i >= rows || i == j) continue;
            if (!half || j >= rows) CHECK(truth != ORACLE_WITHIN || here);
            else CHECK(!(here && there) && (truth != ORACLE_WITHIN || here || there));
            if (!half && j < rows) CHECK(here == there);
            if (half && j < rows && name && here) CHECK(name[i] < name[j]);
        }
    }
}

static void check_list(const oracle_scene *s, const nlist *list, int32_t rows, const int32_t *name)
{
    static uint8_t met[MOST * MOST];
    memset(met, 0, sizeof met);
    CHECK(list->n == s->n && list->row_count == rows && list->rows[list->current].n == rows);
    CHECK_RESULT(nlist_validate(list), NLIST_OK);
    CHECK(oracle_meet(list, met) == NULL);
    check_met(s, met, rows, list->desc.half, name);
}

/* The rows of `all`, a full list of all particles, without what `list` must not have: same order.
   */
static void check_order(const nlist *list, const nlist *all)
{
    int32_t i;
    for (i = 0; i < list->row_count; i++) {
        nlist_each e = nlist_of(list, i), f = nlist_of(all, i);
        while (nlist_next(&f))
            if (!list->desc.half || i < f.id) CHECK(nlist_next(&e) && e.id == f.id);
        CHECK(!nlist_next(&e));
    }
}

static int count_one(void *user, int32_t i, int32_t j, void *history, nlist_real *own,
                     nlist_real *other)
{
    (void)i, (void)j, (void)history;
    *own = 1;
    *other = 1;
    ++*(int64_t *)user;
    return 1;
}

/* Sums, pairs, a file and back. */
static void check_uses(const oracle_scene *s, nlist *list, const nlist_desc *d)
{
    static nlist_real sums[MOST];
    nlist_sums how = {0};
    nlist back = {0};
    int64_t called = 0, needed = 0;
    uint8_t *bytes;
    int32_t i, bad;
    memset(sums, 0, sizeof sums);
    how.values = 1;
    CHECK_RESULT(nlist_sum(list, &how, count_one, &called, sums), NLIST_OK);
    CHECK(called == list->total);
    for (i = list->row_count; i < list->n; i++) CHECK(list->desc.half || sums[i] == 0);
    CHECK_RESULT(nlist_save(list, NULL, 0, &needed), NLIST_BUFFER_TOO_SMALL);
    bytes = NEW(uint8_t, needed);
    CHECK_RESULT(nlist_save(list, bytes, needed, &needed), NLIST_OK);
    CHECK_RESULT(nlist_load(&back, d, bytes, needed), NLIST_OK);
    CHECK(back.row_count == list->row_count && oracle_same_order(list, &back) == NULL);
    CHECK_RESULT(nlist_validate(&back), NLIST_OK);
    CHECK_RESULT(nlist_verify(list, d, s->pos, s->stride, s->n, 1, &bad), NLIST_OK);
    free(bytes);
    nlist_free(&back);
}

/* Every method of a grid, with the order of its cells. */
static void build_grid(ugrid *grid, const oracle_scene *s, int kind, int32_t rows)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT,        UGRID_SORT,  UGRID_FIXED,
                                           UGRID_LIST,  UGRID_LIST_PACKED, UGRID_COUNT, UGRID_LIST};
    ugrid_desc d = oracle_ugrid_desc(s);
    d.method = methods[kind];
    d.rows = rows;
    if (kind == 2) d.cell_order = UGRID_MORTON;
    if (kind == 6) d.no_records = 1;
    if (kind == 7) d.placement = UGRID_TIGHT, d.size = s->cell;
    CHECK(ugrid_build(grid, &d, s->pos, s->stride, s->n) == UGRID_OK);
}
enum { GRIDS = 8 };

static void check_builds(const oracle_scene *s, int32_t asked, wl_random *dice)
{
    int32_t const rows = rows_of(asked, s->n);
    nlist list = {0}, all = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    lbvh_desc branches;
    int layout, half, kind;
    memset(&branches, 0, sizeof branches);
    branches.dim = s->dim;
    branches.kind = LBVH_POINTS;
    CHECK(lbvh_build(&tree, &branches, s->pos, s->stride, s->n) == LBVH_OK);
    for (layout = 0; layout <= NLIST_HYBRID; layout++) {
        for (half = 0; half < 2; half++) {
            nlist_desc d = oracle_desc(s), whole = d;
            d.layout = (nlist_layout)layout;
            d.width = layout == NLIST_HYBRID ? oracle_roll(dice, 4) : 0;
            d.grow = 1;
            d.half = half;
            d.rows = asked;
            for (kind = -2; kind < GRIDS; kind++) {
                if (kind >= 0) build_grid(&grid, s, kind, oracle_roll(dice, 2) ? 0 : asked);
                CHECK_RESULT(kind == -2 ? nlist_build_brute(&list, &d, s->pos, s->stride, s->n)
                             : kind == -1
                                 ? nlist_build_lbvh(&list, &d, &tree, s->pos, s->stride, s->n)
                                 : nlist_build_ugrid(&list, &d, &grid, s->pos, s->stride, s->n),
                             NLIST_OK);
                CHECK_RESULT(kind == -2 ? nlist_build_brute(&all, &whole, s->pos, s->stride, s->n)
                             : kind == -1
                                 ? nlist_build_lbvh(&all, &whole, &tree, s->pos, s->stride, s->n)
                                 : nlist_build_ugrid(&all, &whole, &grid, s->pos, s->stride, s->n),
                             NLIST_OK);
                check_list(s, &list, rows, NULL);
                check_order(&list, &all);
            }
            check_uses(s, &list, &d);
        }
    }
    nlist_free(&list);
    nlist_free(&all);
    ugrid_free(&grid);
    lbvh_free(&tree);
}

static int32_t asked_of(int turn, int32_t n, wl_random *dice)
{
    return turn == 0 ? NLIST_NO_ROWS : turn == 1 ? 1 : turn == 2 ? n : 1 + oracle_roll(dice, n);
}

static void test_builds(void **state)
{
    wl_random dice = wl_seed(7);
    int input, turn;
    (void)state;
    for (input = ORACLE_UNIFORM; input < ORACLE_EMPTY; input++) {
        for (turn = 0; turn < (small_run() ? 4 : 12); turn++) {
            int32_t const n = 2 + oracle_roll(&dice, small_run() ? 40 : MOST - 2);
            int const dim = 2 + oracle_roll(&dice, 2), options = oracle_roll(&dice, ORACLE_ALL + 1);
            oracle_scene s;
            oracle_make(&s, input, dim, oracle_roll(&dice, 8), n, options, &dice);
            check_builds(&s, asked_of(turn, n, &dice), &dice);
            oracle_forget(&s);
        }
    }
}

/* Pairs of the caller: those of two ghosts are left out. */
static void test_pairs(void **state)
{
    wl_random dice = wl_seed(8);
    int turn, half;
    (void)state;
    for (turn = 0; turn < 8; turn++) {
        for (half = 0; half < 2; half++) {
            oracle_scene s;
            nlist list = {0}, from = {0};
            nlist_desc d;
            int32_t *pairs;
            int64_t m;
            oracle_make(&s, ORACLE_LATTICE, 3, turn, 30, 0, &dice);
            d = oracle_desc(&s);
            CHECK_RESULT(nlist_build_brute(&from, &d, s.pos, s.stride, s.n), NLIST_OK);
            pairs = oracle_pairs(&from, &dice, &m);
            d.half = half;
            d.rows = asked_of(turn % 4, s.n, &dice);
            CHECK_RESULT(nlist_build_pairs(&list, &d, pairs, m, s.n), NLIST_OK);
            check_list(&s, &list, rows_of(d.rows, s.n), NULL);
            free(pairs);
            nlist_free(&list);
            nlist_free(&from);
            oracle_forget(&s);
        }
    }
}

static uint8_t seen[MOST * MOST];
static const ugrid *seen_grid;
static int seen_places, seen_row;
static int see(void *user, int32_t i, int32_t j)
{
    seen[(size_t)i * (size_t) * (int32_t *)user + (size_t)j]++;
    return 0;
}
static int see_row(void *user, int32_t i, const int32_t *ids, int32_t count)
{
    int32_t k;
    CHECK(count > 0);
    for (k = 0; k < count; k++)
        see(user, seen_places ? ugrid_id(seen_grid, i) : i,
            seen_places ? ugrid_id(seen_grid, ids[k]) : ids[k]);
    return ++seen_row == 3 && *(int32_t *)user < 0;
}

/* The searches of a grid: rows by id and by place, each pair, counts. */
static void check_searches(const oracle_scene *s, const ugrid *grid, int flags, int32_t rows)
{
    static int64_t offsets[MOST + 1];
    static int32_t ids[MOST * MOST], counts[MOST];
    int const half = (flags & UGRID_HALF) != 0, places = (flags & UGRID_PLACES) != 0;
    int32_t const length = places ? s->n : rows;
    int64_t needed, pairs, e;
    int32_t n = s->n, r;
    memset(seen, 0, sizeof seen);
    CHECK(ugrid_neighbors(grid, s->radius, flags, offsets, ids, MOST * MOST, &needed) == UGRID_OK);
    CHECK(ugrid_count_neighbors(grid, s->radius, flags, counts) == UGRID_OK);
    CHECK(offsets[0] == 0 && offsets[length] == needed);
    for (r = 0; r < length; r++) {
        CHECK(counts[r] == offsets[r + 1] - offsets[r]);
        for (e = offsets[r]; e < offsets[r + 1]; e++)
            see(&n, places ? ugrid_id(grid, r) : r, places ? ugrid_id(grid, ids[e]) : ids[e]);
    }
    check_met(s, seen, rows, half, NULL);
    memset(seen, 0, sizeof seen);
    if (!places) CHECK(ugrid_each_pair(grid, s->radius, flags, see, &n) == UGRID_OK);
    if (!places) check_met(s, seen, rows, half, NULL);
    memset(seen, 0, sizeof seen);
    seen_grid = grid;
    seen_places = places;
    CHECK(ugrid_each_row(grid, s->radius, flags, see_row, &n) == UGRID_OK);
    check_met(s, seen, rows, half, NULL);
    CHECK(ugrid_count_pairs(grid, s->radius, &pairs) == UGRID_OK);
    if (half) CHECK(pairs == needed);
}

static void test_searches(void **state)
{
    wl_random dice = wl_seed(9);
    int input, turn, kind, flags;
    (void)state;
    for (input = ORACLE_UNIFORM; input < ORACLE_EMPTY; input++) {
        for (turn = 0; turn < 4; turn++) {
            int32_t const n = 2 + oracle_roll(&dice, small_run() ? 60 : MOST - 2),
                          asked = asked_of(turn, n, &dice);
            oracle_scene s;
            oracle_make(&s, input, 2 + oracle_roll(&dice, 2), oracle_roll(&dice, 8), n, 0, &dice);
            for (kind = 0; kind < GRIDS; kind++) {
                ugrid grid = {0};
                build_grid(&grid, &s, kind, asked);
                for (flags = 0; flags < 4; flags++)
                    check_searches(&s, &grid, flags, rows_of(asked, n));
                ugrid_free(&grid);
            }
            oracle_forget(&s);
        }
    }
}

/* A block of more candidates than the buffer holds: they are tested in pieces, with the same
   rows. */
static void test_crowd(void **state)
{
    enum { CROWD = 2600 };
    static nlist_real pos[3 * CROWD];
    ugrid grid = {0};
    ugrid_desc d = {0};
    int64_t pairs;
    int64_t const rows = 5;
    (void)state;
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = 1;
    d.rows = (int32_t)rows;
    CHECK(ugrid_build(&grid, &d, pos, 0, CROWD) == UGRID_OK);
    CHECK(ugrid_count_pairs(&grid, (nlist_real)0.5, &pairs) == UGRID_OK);
    CHECK(pairs == rows * (rows - 1) / 2 + rows * (CROWD - rows));
    ugrid_free(&grid);
}

/* Half lists of spheres of two sizes, whose cells have more candidates than a search copies at a
   time: the radii are tested there, too. */
static void test_two_sizes(void **state)
{
    enum { SPHERES = 20000 };
    static nlist_real pos[3 * SPHERES], radii[SPHERES];
    int32_t const n = small_run() || SANITIZED ? 2500 : SPHERES;
    wl_random dice = wl_seed(12);
    nlist list = {0}, brute = {0};
    ugrid grid = {0};
    ugrid_desc cells = {0};
    nlist_desc d = {0};
    int32_t i;
    (void)state;
    cells.max[0] = cells.max[1] = cells.max[2] = n == SPHERES ? 8 : 4;
    cells.cell = 2;
    for (i = 0; i < 3 * n; i++) pos[i] = cells.max[0] * (nlist_real)wl_u(&dice);
    for (i = 0; i < n; i++) radii[i] = i < 10 ? 1 : (nlist_real)0.1;
    d.radii = radii;
    d.half = 1;
    CHECK(ugrid_build(&grid, &cells, pos, 0, n) == UGRID_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, n), NLIST_OK);
    CHECK_RESULT(nlist_build_brute(&brute, &d, pos, 0, n), NLIST_OK);
    CHECK(list.total == brute.total);
    for (i = 0; i < n; i++)
        CHECK(list.rows[list.current].count[i] == brute.rows[brute.current].count[i]);
    nlist_free(&list);
    nlist_free(&brute);
    ugrid_free(&grid);
}

/* Query points in any order, many in one cell, against one query at a time; a list that is cut;
   points that are not finite. */
static void test_points(void **state)
{
    wl_random dice = wl_seed(10);
    int turn, kind;
    (void)state;
    for (turn = 0; turn < (small_run() ? 3 : 12); turn++) {
        enum { QUERIES = 3000 };
        static nlist_real points[3 * QUERIES];
        static int64_t offsets[QUERIES + 1], few[QUERIES + 1];
        static int32_t ids[QUERIES * MOST], cut[QUERIES * MOST], one[MOST];
        int32_t const m = turn % 3 == 0   ? 31
                          : turn % 3 == 1 ? 32 + oracle_roll(&dice, 900)
                                          : QUERIES;
        oracle_scene s;
        int32_t q, a;
        oracle_make(&s, turn % 3, 3, turn % 8, MOST, 0, &dice);
        for (q = 0; q < m; q++)
            for (a = 0; a < 3; a++)
                points[3 * q + a] =
                    q % 97 == 96 ? (nlist_real)NAN
                    : q % 5 == 0 ? s.pos[3 * (q % MOST) + a]
                                 : oracle_between(&dice, s.min[a] - s.cell, s.max[a] + s.cell);
        for (kind = 0; kind < GRIDS; kind++) {
            ugrid grid = {0};
            int64_t needed, again, k;
            build_grid(&grid, &s, kind, 0);
            grid.desc.walk = ugrid_i_list_walk(&grid);
            CHECK(ugrid_neighbors_at(&grid, points, 0, m, s.radius, offsets, ids, QUERIES * MOST,
                                     &needed) == UGRID_OK);
            CHECK(offsets[m] == needed);
            for (q = 0; q < m; q++) {
                int32_t found = 0;
                CHECK(ugrid_query(&grid, points + 3 * q, s.radius, one, MOST, &found) ==
                      (q % 97 == 96 ? UGRID_NOT_FINITE : UGRID_OK));
                CHECK(offsets[q + 1] - offsets[q] == found);
                CHECK(memcmp(one, ids + offsets[q], (size_t)found * sizeof *one) == 0);
            }
            for (k = 0; k < needed; k++) cut[k] = -7;
            CHECK(ugrid_neighbors_at(&grid, points, 0, m, s.radius, few, NULL, 0, &again) ==
                  (needed ? UGRID_BUFFER_TOO_SMALL : UGRID_OK));
            CHECK(again == needed && memcmp(few, offsets, ((size_t)m + 1) * sizeof *few) == 0);
            if (needed > 5)
                CHECK(ugrid_neighbors_at(&grid, points, 0, m, s.radius, few, cut, needed / 2,
                                         &again) == UGRID_BUFFER_TOO_SMALL);
            CHECK(again == needed && memcmp(few, offsets, ((size_t)m + 1) * sizeof *few) == 0);
            if (needed > 5)
                CHECK(memcmp(cut, ids, (size_t)(needed / 2) * sizeof *cut) == 0 &&
                      cut[needed / 2] == -7);
            ugrid_free(&grid);
        }
        oracle_forget(&s);
    }
}

/* History by names, while particles move, are renumbered, and become locals or ghosts. A contact
   that stays in the row of the same
   particle keeps its bytes, others begin with zeros. */
static void check_history(int half, int layout, int periodic, wl_random *dice)
{
    enum { N = 40 };
    static int32_t was[N][N]; /* by names, row and partner: the number written there, 0 = none */
    static int32_t now[N][N];
    int32_t name[N], moved[N], new_id[N], i, step, rows = 1 + oracle_roll(dice, N);
    nlist_real pos[3 * N];
    oracle_scene s;
    nlist list = {0};
    int32_t stamp = 0;
    oracle_make(&s, ORACLE_UNIFORM, 3, periodic, N, ORACLE_MASKS, dice);
    free(s.masks);
    s.masks = NULL;
    memset(was, 0, sizeof was);
    for (i = 0; i < N; i++) name[i] = i;
    for (step = 0; step < 12; step++) {
        nlist_desc d = oracle_desc(&s);
        ugrid grid = {0};
        d.half = half;
        d.layout = (nlist_layout)layout;
        d.grow = 1;
        d.history = (int32_t)sizeof(int32_t);
        d.rows = rows;
        oracle_find(&s);
        build_grid(&grid, &s, step % 3, 0);
        CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, s.pos, s.stride, N), NLIST_OK);
        check_list(&s, &list, rows, half ? name : NULL);
        memset(now, 0, sizeof now);
        for (i = 0; i < N; i++) {
            nlist_each e = nlist_of(&list, i);
            while (nlist_next(&e)) {
                int32_t had;
                memcpy(&had, e.history, sizeof had);
                CHECK(had == was[name[i]][name[e.id]]);
                stamp++;
                memcpy(e.history, &stamp, sizeof stamp);
                now[name[i]][name[e.id]] = stamp;
            }
        }
        memcpy(was, now, sizeof was);
        ugrid_free(&grid);
        for (i = 0; i < N; i++) new_id[i] = i;
        for (i = N - 1; i > 0; i--) {
            int32_t const k = oracle_roll(dice, i + 1), t = new_id[i];
            new_id[i] = new_id[k];
            new_id[k] = t;
        }
        rows = step % 4 == 3 ? N : 1 + oracle_roll(dice, N);
        CHECK_RESULT(nlist_remap_rows(&list, new_id, N, rows), NLIST_OK);
        CHECK(list.row_count == rows);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (i = 0; i < N; i++) {
            int a;
            moved[new_id[i]] = name[i];
            for (a = 0; a < 3; a++)
                pos[3 * new_id[i] + a] =
                    s.pos[3 * i + a] +
                    s.cell * oracle_between(dice, (nlist_real)-0.05, (nlist_real)0.05);
            /* the rows of ghosts are gone, with what was written there */
            if (new_id[i] >= rows) memset(was[name[i]], 0, sizeof was[0]);
        }
        for (i = 0; half && i < N;
             i++) { /* and contacts in the row of the higher name, when the other becomes a local */
            int32_t k;
            for (k = 0; k < N; k++)
                if (name[k] < name[i] && new_id[k] < rows) was[name[i]][name[k]] = 0;
        }
        memcpy(name, moved, sizeof name);
        memcpy(s.pos, pos, sizeof pos);
    }
    nlist_free(&list);
    oracle_forget(&s);
}

static void test_history(void **state)
{
    wl_random dice = wl_seed(11);
    int half, layout, periodic;
    (void)state;
    for (half = 0; half < 2; half++)
        for (layout = 0; layout <= NLIST_HYBRID; layout++)
            for (periodic = 0; periodic < 8; periodic += small_run() ? 7 : 1)
                check_history(half, layout, periodic, &dice);
}

/* What is refused, and that the list stays. */
static void test_refusals(void **state)
{
    nlist_real const pos[] = {0, 0, 0, (nlist_real)0.1, 0, 0, (nlist_real)0.2, 0, 0};
    int32_t const same[] = {0, 1, 2};
    nlist list = {0};
    nlist_desc d = {0}, filled;
    ugrid grid = {0};
    ugrid_desc g = {0}, cells;
    (void)state;
    d.radius = (nlist_real)0.15;
    d.rows = 2;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 3), NLIST_OK);
    CHECK(list.total == 3 && list.row_count == 2);
    d.rows = 4;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 3), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_reserve(&list, &d, 3, 10), NLIST_BAD_ROWS);
    CHECK(list.total == 3 && list.row_count == 2);
    d.rows = -2;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 3), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_defaults(&filled, &d), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_remap_rows(&list, same, 3, 4), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_remap_rows(&list, same, 3, -1), NLIST_BAD_ROWS);
    CHECK_RESULT(nlist_remap(&list, same, 3), NLIST_OK);
    CHECK(list.total == 3 && list.row_count == 2);
    CHECK_RESULT(nlist_remap_rows(&list, same, 3, 0), NLIST_OK);
    CHECK(list.total == 0 && list.row_count == 0 && list.n == 3);
    nlist_free(&list);
    g.cell = (nlist_real)0.2;
    g.rows = 4;
    CHECK(ugrid_build(&grid, &g, pos, 0, 3) == UGRID_BAD_ROWS);
    g.rows = -2;
    CHECK(ugrid_build(&grid, &g, pos, 0, 3) == UGRID_BAD_ROWS);
    CHECK(ugrid_defaults(&cells, &g) == UGRID_BAD_ROWS);
    CHECK(ugrid_reserve(&grid, &g, 3) == UGRID_BAD_ROWS);
    g.rows = 3;
    CHECK(ugrid_build(&grid, &g, pos, 0, 3) == UGRID_OK);
    CHECK(grid.rows == 3);
    ugrid_free(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds),   cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_searches), cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_two_sizes),
        cmocka_unit_test(test_points),   cmocka_unit_test(test_history),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
