/* test_limits.c - the ends of every range: n around 2^31, cells around 2^63, more than 2^32 pairs,
   and room that is exactly enough, and one less.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/all/test_limits.c -o test_limits -lcmocka -lm && ./test_limits
       (add -DUGRID_REAL=double ... -DNBODY_REAL=double for the double build; packages:
       libcmocka-dev libstb-dev)

   Counts that are too large are refused before an array is read: the arrays here have four
   elements, and nothing is allocated.

   Environment: LIMITS_TEST_FULL=1   pairs beyond 2^32, too (minutes) */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

enum { N = 60, MOST = INT32_MAX - 1023 }; /* 2^31 - 1024 */

static void *no_alloc(size_t bytes, void *user) { (void)bytes; ++*(int *)user; return NULL; }
static void no_free(void *memory, size_t bytes, void *user)
{
    (void)memory;
    (void)bytes;
    *(int *)user += 1000;
}

#define NO_MEMORY(desc, asked)                                                                     \
    ((desc)->allocator.alloc = no_alloc, (desc)->allocator.free = no_free,                         \
     (desc)->allocator.user = (asked))

/* ------------------------------------------------------------------------------------------------
   n
   ---------------------------------------------------------------------------------------------- */

/* Negative and too large: refused, and not a byte asked for. At the limit itself: memory is asked
   for, in one size that did not overflow. */
static void test_counts(void **state)
{
    static const int32_t negative[] = {-1, -1024, INT32_MIN},
                         large[] = {INT32_MAX, MOST + 1,        MOST,
                                    1 << 30,   (1 << 30) - 511, (1 << 30) - 512};
    real const four[12] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    int64_t offsets[2], needed = 7;
    int32_t ids[2], found = 7;
    real acc[8];
    int k, asked = 0;
    (void)state;
    for (k = 0; k < COUNT_OF(negative) + COUNT_OF(large); k++) {
        int32_t const n = k < COUNT_OF(negative) ? negative[k] : large[k - COUNT_OF(negative)];
        int const bad = n < 0;
        ugrid grid = {0};
        lbvh tree = {0};
        nlist list = {0};
        nbody sim = {0};
        ugrid_desc g;
        lbvh_desc t;
        nlist_desc d;
        nbody_desc b;
        lbvh_result tr;
        nlist_result lr;
        nbody_result br;
        ugrid_result gr;
        memset(&g, 0, sizeof g);
        memset(&t, 0, sizeof t);
        memset(&d, 0, sizeof d);
        memset(&b, 0, sizeof b);
        NO_MEMORY(&g, &asked);
        NO_MEMORY(&t, &asked);
        NO_MEMORY(&d, &asked);
        NO_MEMORY(&b, &asked);
        g.max[0] = g.max[1] = g.max[2] = 4;
        g.cell = 1;
        t.kind = LBVH_POINTS;
        d.radius = 1;
        asked = 0;
        gr = ugrid_reserve(&grid, &g, n);
        CHECK(gr == (bad        ? UGRID_BAD_ARGUMENT
                     : n > MOST ? UGRID_TOO_MANY_ENTRIES
                                : UGRID_OUT_OF_MEMORY));
        CHECK((asked > 0) == (gr == UGRID_OUT_OF_MEMORY));
        if (bad || n > MOST)
            CHECK(ugrid_build(&grid, &g, four, 0, n) == gr && grid.n == 0 && asked == 0);
        if (bad) {
            CHECK(ugrid_fit(&g, four, 0, n, NULL) == UGRID_BAD_ARGUMENT);
            CHECK(ugrid_neighbors_at(&grid, four, 0, n, 1, offsets, ids, 2, &needed) ==
                  UGRID_BAD_ARGUMENT);
            CHECK(ugrid_query(&grid, four, 1, ids, n, &found) == UGRID_BAD_ARGUMENT);
            CHECK(ugrid_neighbors(&grid, 1, 0, offsets, ids, n, &needed) == UGRID_BAD_ARGUMENT);
        }
        asked = 0;
        tr = lbvh_reserve(&tree, &t, n);
        CHECK(tr == (bad                   ? LBVH_BAD_ARGUMENT
                     : n > (1 << 30) - 512 ? LBVH_TOO_MANY
                                           : LBVH_OUT_OF_MEMORY));
        CHECK((asked > 0) == (tr == LBVH_OUT_OF_MEMORY));
        if (tr != LBVH_OUT_OF_MEMORY) {
            lbvh_queries q;
            CHECK(lbvh_build(&tree, &t, four, 0, n) == tr &&
                  lbvh_boxes(&t, four, 0, n, acc, NULL) == tr);
            memset(&q, 0, sizeof q);
            q.kind = LBVH_POINTS;
            q.data = four;
            q.n = n;
            CHECK(lbvh_count_overlaps(&tree, &q, ids) == tr &&
                  lbvh_overlaps(&tree, &q, offsets, ids, 2, &needed) == tr);
            CHECK(asked == 0 && tree.n == 0);
        }
        if (bad) {
            CHECK(lbvh_pairs(&tree, ids, n, &needed) == LBVH_BAD_ARGUMENT);
            CHECK(lbvh_nearest(&tree, four, n, 1, NULL, NULL, ids, acc, &found) ==
                  LBVH_BAD_ARGUMENT);
            CHECK(lbvh_save(&tree, acc, n, &needed) == LBVH_BAD_ARGUMENT);
        }
        asked = 0;
        lr = nlist_reserve(&list, &d, n, 4);
        CHECK(lr == (bad ? NLIST_BAD_ARGUMENT : n > MOST ? NLIST_TOO_MANY : NLIST_OUT_OF_MEMORY));
        CHECK((asked > 0) == (lr == NLIST_OUT_OF_MEMORY));
        if (lr != NLIST_OUT_OF_MEMORY) {
            CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, n), lr);
            CHECK_RESULT(nlist_build_pairs(&list, &d, ids, 0, n), lr);
            CHECK(asked == 0 && list.n == 0);
        }
        if (bad) {
            CHECK_RESULT(nlist_build_pairs(&list, &d, ids, n, 4), NLIST_BAD_ARGUMENT);
            CHECK_RESULT(nlist_reserve(&list, &d, 4, n), NLIST_BAD_ARGUMENT);
            CHECK_RESULT(nlist_pairs(&list, ids, n, &needed, NULL, 0, NULL), NLIST_BAD_ARGUMENT);
            CHECK_RESULT(nlist_save(&list, acc, n, &needed), NLIST_BAD_ARGUMENT);
            CHECK_RESULT(nlist_remap(&list, ids, n), NLIST_BAD_ARGUMENT);
        }
        asked = 0;
        br = nbody_reserve(&sim, &b, n);
        CHECK(br == (bad                   ? NBODY_BAD_ARGUMENT
                     : n > (1 << 30) - 512 ? NBODY_TOO_MANY
                                           : NBODY_OUT_OF_MEMORY));
        CHECK((asked > 0) == (br == NBODY_OUT_OF_MEMORY));
        if (br != NBODY_OUT_OF_MEMORY) {
            CHECK(nbody_build(&sim, &b, four, 0, NULL, n) == br &&
                  nbody_accelerations(&sim, &b, four, 0, NULL, n, acc) == br);
            CHECK(asked == 0 && sim.n == 0);
        }
        CHECK(asked < 1000); /* nothing was given back that had not been taken */
    }
}

/* Entries of lists, which are counted in 64 bits: every product with them has to be kept below
   2^63. */
static void test_entries(void **state)
{
    static const int64_t large[] = {INT64_MAX,        INT64_MAX - 1,          INT64_MAX / 4,
                                    INT64_MAX / 4100, ((int64_t)1 << 62) + 1, (int64_t)1 << 62,
                                    (int64_t)1 << 50};
    int k, layout, history, asked = 0;
    (void)state;
    for (k = 0; k < COUNT_OF(large); k++)
        for (layout = 0; layout < 4; layout++)
            for (history = 0; history <= 4096; history += 4096) {
                nlist list = {0};
                nlist_desc d;
                nlist_result r;
                memset(&d, 0, sizeof d);
                NO_MEMORY(&d, &asked);
                d.radius = 1;
                d.layout = (nlist_layout)layout;
                d.history = history;
                d.capacity = large[k];
                r = nlist_reserve(&list, &d, 4, large[k]);
                CHECK(r == NLIST_TOO_MANY || r == NLIST_OUT_OF_MEMORY);
                if (layout == NLIST_DYNAMIC || layout == NLIST_HYBRID)
                    CHECK_RESULT(r, NLIST_TOO_MANY);
                CHECK(list.n == 0 && nlist_bytes(&list) == 0);
            }
    CHECK(asked < 1000);
}

/* ------------------------------------------------------------------------------------------------
   Cells
   ---------------------------------------------------------------------------------------------- */

/* Products of 2^52 .. 2^84 cells: refused, with what was needed, as far as it is a number; never
   wrapped to something that fits. */
static void test_cells(void **state)
{
    real const four[12] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    int bits, dim, asked = 0, order, split;
    (void)state;
    for (dim = 2; dim <= 3; dim++)
        for (order = 0; order < 2; order++)
            for (split = 0; split <= 64; split += 64)
                for (bits = 8; bits <= 40; bits++) {
                    ugrid grid = {0};
                    ugrid_desc g;
                    ugrid_result r;
                    double want = pow(2, bits * dim) * (split ? split : 1);
                    int a;
                    memset(&g, 0, sizeof g);
                    NO_MEMORY(&g, &asked);
                    g.dim = dim;
                    for (a = 0; a < dim; a++) g.max[a] = 1;
                    g.cell = (real)pow(2, -bits);
                    g.cell_order = (ugrid_cell_order)order;
                    g.split = split;
                    g.max_cells = INT64_MAX;
                    if (order && split) continue;
                    r = ugrid_build(&grid, &g, four, 0, 4);
                    CHECK(grid.n == 0);
                    if (want > MOST) CHECK(r == UGRID_TOO_MANY_CELLS);
                    else CHECK(r == UGRID_OUT_OF_MEMORY || r == UGRID_TOO_MANY_CELLS);
                    if (r == UGRID_TOO_MANY_CELLS && !order)
                        CHECK(grid.needed_cells == (want < 9e18 ? (int64_t)want : INT64_MAX));
                    if (r == UGRID_OUT_OF_MEMORY) CHECK(grid.needed_cells <= MOST);
                }
    CHECK(asked > 0 && asked < 1000);
}

/* max_cells, exactly what is needed, and one less; the same for the slots of a cell. */
static void test_cells_exactly(void **state)
{
    real pos[3 * N];
    int32_t i;
    ugrid grid = {0};
    ugrid_desc g;
    int layout;
    (void)state;
    for (i = 0; i < 3 * N; i++) pos[i] = between(0, 1);
    memset(&g, 0, sizeof g);
    g.max[0] = g.max[1] = g.max[2] = 1;
    g.cell = (real)0.125;
    for (g.method = UGRID_COUNT; g.method <= UGRID_LIST_PACKED;
         g.method = (ugrid_method)(g.method + 1)) {
        g.slots = N;
        g.max_cells = 512;
        CHECK(ugrid_build(&grid, &g, pos, 0, N) == UGRID_OK && grid.needed_cells == 512 &&
              grid.cell_count == 512);
        g.max_cells = 511;
        CHECK(ugrid_build(&grid, &g, pos, 0, N) == UGRID_TOO_MANY_CELLS &&
              grid.needed_cells == 512 && grid.n == 0);
    }
    g.method = UGRID_FIXED;
    g.max_cells = 0;
    g.cell = (real)0.5;
    for (layout = 0; layout < 2; layout++) {
        int32_t full;
        g.slot_layout = (ugrid_slot_layout)layout;
        g.slots = 1;
        CHECK(ugrid_build(&grid, &g, pos, 0, N) == UGRID_CELL_FULL && grid.n == 0);
        full = grid.needed_slots;
        g.slots = full - 1;
        CHECK(full > 1 && ugrid_build(&grid, &g, pos, 0, N) == UGRID_CELL_FULL &&
              grid.needed_slots == full && grid.n == 0);
        g.slots = full;
        CHECK(ugrid_build(&grid, &g, pos, 0, N) == UGRID_OK && ugrid_validate(&grid) == UGRID_OK);
    }
    ugrid_free(&grid);
}

/* ------------------------------------------------------------------------------------------------
   Room for results: exactly enough, and one less. Arrays have exactly that size, so that sanitizers
   see what goes beyond.
   ---------------------------------------------------------------------------------------------- */

/* A list of rows in an array with room for `capacity`, asked for by `call`: complete, or its whole
   rows, and nothing else written. */
#define CHECK_ROWS(call, rows, OK, TOO_SMALL)                                                      \
    do {                                                                                           \
        int64_t needed = -1, all = 0, capacity, at, less;                                          \
        int64_t *offsets = NEW(int64_t, (rows) + 1);                                               \
        int32_t *ids = NULL, *want = NULL;                                                         \
        capacity = 0;                                                                              \
        CHECK((call) == TOO_SMALL && needed > 2); /* NULL with 0 only counts */                    \
        all = needed;                                                                              \
        want = NEW(int32_t, all);                                                                  \
        for (less = 0; less < 3; less++) {                                                         \
            int32_t row;                                                                           \
            capacity = less == 2 ? all / 2 : all - less;                                           \
            ids = NEW(int32_t, capacity);                                                          \
            for (at = 0; at < capacity; at++) ids[at] = -77;                                       \
            CHECK((call) == (less ? TOO_SMALL : OK) && needed == all && offsets[rows] == all &&    \
                  offsets[0] == 0);                                                                \
            if (!less) memcpy(want, ids, (size_t)all * sizeof *ids);                               \
            for (row = 0; row < (rows); row++)                                                     \
                for (at = offsets[row]; at < offsets[row + 1] && offsets[row + 1] <= capacity;     \
                     at++)                                                                         \
                    CHECK(ids[at] == want[at]);                                                    \
            free(ids);                                                                             \
            ids = NULL;                                                                            \
        }                                                                                          \
        free(offsets);                                                                             \
        free(want);                                                                                \
    } while (0)

static void test_rows_exactly(void **state)
{
    real pos[3 * N];
    int32_t i;
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    lbvh_queries q;
    real const radius = (real)0.3;
    (void)state;
    for (i = 0; i < 3 * N; i++) pos[i] = between(0, 1);
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    memset(&q, 0, sizeof q);
    g.cell = (real)0.2;
    g.slots = N;
    for (g.method = UGRID_COUNT; g.method <= UGRID_LIST_PACKED;
         g.method = (ugrid_method)(g.method + 1)) {
        int32_t found = -1, all, *few;
        CHECK(ugrid_build(&grid, &g, pos, 0, N) == UGRID_OK);
        CHECK_ROWS(ugrid_neighbors(&grid, radius, 0, offsets, ids, capacity, &needed), N, UGRID_OK,
                   UGRID_BUFFER_TOO_SMALL);
        CHECK_ROWS(ugrid_neighbors(&grid, radius, UGRID_HALF, offsets, ids, capacity, &needed), N,
                   UGRID_OK, UGRID_BUFFER_TOO_SMALL);
        CHECK_ROWS(ugrid_neighbors(&grid, radius, UGRID_PLACES, offsets, ids, capacity, &needed), N,
                   UGRID_OK, UGRID_BUFFER_TOO_SMALL);
        CHECK_ROWS(ugrid_neighbors(&grid, radius, UGRID_PLACES | UGRID_HALF, offsets, ids, capacity,
                                   &needed),
                   N, UGRID_OK, UGRID_BUFFER_TOO_SMALL);
        CHECK_ROWS(ugrid_neighbors_at(&grid, pos, 0, 7, radius, offsets, ids, capacity, &needed), 7,
                   UGRID_OK, UGRID_BUFFER_TOO_SMALL);
        CHECK(ugrid_query(&grid, pos, radius, NULL, 0, &all) == UGRID_BUFFER_TOO_SMALL && all > 1);
        few = NEW(int32_t, all);
        CHECK(ugrid_query(&grid, pos, radius, few, all, &found) == UGRID_OK && found == all);
        free(few);
        few = NEW(int32_t, all - 1);
        CHECK(ugrid_query(&grid, pos, radius, few, all - 1, &found) == UGRID_BUFFER_TOO_SMALL &&
              found == all);
        free(few);
    }
    ugrid_free(&grid);
    t.kind = LBVH_POINTS;
    t.radius = (real)0.12;
    for (i = 0; i < 3; i++) {
        t.builder = (lbvh_builder)(i % 3);
        CHECK(lbvh_build(&tree, &t, pos, 0, N) == LBVH_OK);
        q.flags = i == 2 ? LBVH_PLACES : i ? LBVH_HALF : 0;
        CHECK_ROWS(lbvh_overlaps(&tree, &q, offsets, ids, capacity, &needed), N, LBVH_OK,
                   LBVH_BUFFER_TOO_SMALL);
    }
    q.flags = 0;
    q.kind = LBVH_POINTS;
    q.radius = (real)0.2;
    q.data = pos;
    q.n = 9;
    CHECK_ROWS(lbvh_overlaps(&tree, &q, offsets, ids, capacity, &needed), 9, LBVH_OK,
               LBVH_BUFFER_TOO_SMALL);
    lbvh_free(&tree);
}

/* Pairs and files: the same array of `size` units for `capacity`. */
#define CHECK_ROOM(type, per, call, OK, TOO_SMALL)                                                 \
    do {                                                                                           \
        int64_t needed = -1, all, capacity = 0;                                                    \
        type *room = NULL, *whole = NULL;                                                          \
        CHECK((call) == TOO_SMALL && needed > 1);                                                  \
        all = needed;                                                                              \
        for (capacity = all + 1; capacity >= all - 1; capacity--) {                                \
            room = NEW(type, (per)*capacity);                                                      \
            needed = -1;                                                                           \
            CHECK((call) == (capacity < all ? TOO_SMALL : OK) && needed == all);                   \
            if (!whole) whole = room;                                                              \
            else if (capacity == all)                                                              \
                CHECK(same(room, whole, (size_t)((per)*all) * sizeof *room));                      \
            if (room != whole) free(room);                                                         \
        }                                                                                          \
        free(whole);                                                                               \
    } while (0)

static void test_room_exactly(void **state)
{
    real pos[3 * N];
    int32_t i;
    lbvh tree = {0};
    lbvh_desc t;
    int layout;
    (void)state;
    for (i = 0; i < 3 * N; i++) pos[i] = between(0, 1);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_POINTS;
    t.radius = (real)0.12;
    CHECK(lbvh_build(&tree, &t, pos, 0, N) == LBVH_OK);
    CHECK_ROOM(int32_t, 2, lbvh_pairs(&tree, room, capacity, &needed), LBVH_OK,
               LBVH_BUFFER_TOO_SMALL);
    CHECK_ROOM(char, 1, lbvh_save(&tree, room, capacity, &needed), LBVH_OK, LBVH_BUFFER_TOO_SMALL);
    lbvh_free(&tree);
    for (layout = 0; layout < 4; layout++) {
        nlist list = {0}, again = {0};
        nlist_desc d;
        int64_t needed = -1;
        memset(&d, 0, sizeof d);
        d.radius = (real)0.3;
        d.layout = (nlist_layout)layout;
        d.width = layout == NLIST_STATIC ? N : layout == NLIST_HYBRID ? 2 : 0;
        d.half = layout % 2;
        d.history = 4;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, N), NLIST_OK);
        CHECK_ROOM(int32_t, 2, nlist_pairs(&list, room, capacity, &needed, NULL, 0, NULL), NLIST_OK,
                   NLIST_BUFFER_TOO_SMALL);
        CHECK_ROOM(char, 1, nlist_save(&list, room, capacity, &needed), NLIST_OK,
                   NLIST_BUFFER_TOO_SMALL);
        /* The list's own room: desc.capacity, or slots, and what a refused build leaves. */
        if (layout == NLIST_STATIC) {
            d.width = list.needed_width;
            CHECK_RESULT(nlist_build_brute(&again, &d, pos, 0, N), NLIST_OK);
            d.width = list.needed_width - 1;
            CHECK_RESULT(nlist_build_brute(&again, &d, pos, 0, N), NLIST_ROW_FULL);
            CHECK(again.needed_width == list.needed_width);
        } else {
            needed = list.needed_entries;
            CHECK(needed > 1);
            d.capacity = needed;
            CHECK_RESULT(nlist_build_brute(&again, &d, pos, 0, N), NLIST_OK);
            d.capacity = needed - 1;
            CHECK_RESULT(nlist_build_brute(&again, &d, pos, 0, N), NLIST_LIST_FULL);
            CHECK(again.needed_entries == needed);
        }
        CHECK(again.n == N && again.total == list.total); /* as it was before */
        CHECK_FINE(oracle_same_order(&again, &list));
        CHECK_RESULT(nlist_validate(&again), NLIST_OK);
        nlist_free(&list);
        nlist_free(&again);
    }
}

/* ------------------------------------------------------------------------------------------------
   Periods
   ---------------------------------------------------------------------------------------------- */

/* Does every method find the two particles at this distance, and not at the next smaller one? */
static void check_two(const real pos[4], real radius, double periods)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_FIXED, UGRID_LIST,
                                           UGRID_LIST_PACKED};
    int m, smaller;
    for (m = 0; m < COUNT_OF(methods); m++) for (smaller = 0; smaller < 2; smaller++) {
        real const reach = smaller ? radius - radius / 32 : radius;
        ugrid grid = {0};
        nlist list = {0};
        ugrid_desc g;
        nlist_desc d;
        int64_t pairs = 7, needed = 0;
        int32_t pair[2] = {7, 7}, shift[3] = {7, 7, 7}, found = 7, ids[2];
        memset(&g, 0, sizeof g);
        memset(&d, 0, sizeof d);
        g.dim = d.dim = 2;
        g.max[0] = g.max[1] = d.max[0] = d.max[1] = 1;
        g.periodic[0] = d.periodic[0] = 1;
        g.cell = (real)0.25;
        g.method = methods[m];
        d.radius = reach;
        d.half = 1;
        CHECK(ugrid_build(&grid, &g, pos, 0, 2) == UGRID_OK && ugrid_validate(&grid) == UGRID_OK);
        CHECK(ugrid_distance2(&grid, pos, pos + 2) == radius * radius);
        CHECK(ugrid_count_pairs(&grid, reach, &pairs) == UGRID_OK && pairs == !smaller);
        CHECK(ugrid_query(&grid, pos, reach, ids, 2, &found) == UGRID_OK && found == 2 - smaller);
        CHECK((m == 0 ? nlist_build_brute(&list, &d, pos, 0, 2)
                      : nlist_build_ugrid(&list, &d, &grid, pos, 0, 2)) == NLIST_OK);
        CHECK(list.total == !smaller && nlist_validate(&list) == NLIST_OK);
        if (fabs(periods) < 1e9) {
            CHECK(nlist_pairs(&list, pair, 1, &needed, pos, 0, shift) == NLIST_OK &&
                  needed == !smaller);
            CHECK(smaller ||
                  (pair[0] + pair[1] == 1 &&
                   shift[0] == (pair[0] == 0 ? 1 : -1) * (int32_t)periods && shift[1] == 0));
        }
        ugrid_free(&grid);
        nlist_free(&list);
    }
}

/* A particle that is 2^k periods away from the box, and one in it: inside, and across the border.
   Powers of two: nothing rounds. */
static void test_far_periods(void **state)
{
    int const most = IS_FLOAT ? 20 : 49;
    int k, sign;
    (void)state;
    for (k = 0; k <= most; k++) for (sign = -1; sign < 2; sign += 2) {
        double const away = sign * ldexp(1, k);
        real const inside[4] = {(real)(away + 0.25), (real)0.5, (real)0.5, (real)0.5};
        real const across[4] = {(real)(away + 0.875), (real)0.5, (real)0.125, (real)0.5};
        check_two(inside, (real)0.25, away);
        check_two(across, (real)0.25, away + 1);
    }
}

/* ------------------------------------------------------------------------------------------------
   More than 2^32
   ---------------------------------------------------------------------------------------------- */

/* Counts without a look at each: nbody_count multiplies, and must do so in 64 bits. */
static void test_many_terms(void **state)
{
    enum { CROWD = 140000 };
    real *pos = NEW(real, 2 * CROWD);
    nbody sim = {0};
    nbody_counts cost;
    nbody_desc d;
    int32_t i;
    (void)state;
    memset(&d, 0, sizeof d);
    d.method = NBODY_DIRECT;
    for (i = 0; i < 2 * CROWD; i++) pos[i] = (real)(i % 7);
    CHECK(nbody_build(&sim, &d, pos, 0, NULL, CROWD) == NBODY_OK);
    CHECK(nbody_count(&sim, &cost) == NBODY_OK);
    CHECK(cost.near_terms == (int64_t)CROWD * CROWD);
    d.method = NBODY_VIRTUAL_PARTICLES;
    for (i = 0; i < 2 * CROWD; i++) /* all but a few in one leaf; not at one point, as one source */
        pos[i] = i < 20 ? (real)i : 1 + (real)((i % 7) * REAL_EPSILON);
    CHECK(nbody_build(&sim, &d, pos, 0, NULL, CROWD) == NBODY_OK);
    CHECK(nbody_count(&sim, &cost) == NBODY_OK);
    CHECK(cost.near_terms >= (int64_t)(CROWD - 20) * (CROWD - 20) &&
          cost.near_terms <= (int64_t)CROWD * CROWD);
    nbody_free(&sim);
    free(pos);
}

/* All at one place: n (n - 1) / 2 pairs, each of them looked at. That takes minutes, hence only
   where LIMITS_TEST_FULL is set. */
static void test_many_pairs(void **state)
{
    enum { CROWD = 92700 };
    int64_t const want = (int64_t)CROWD * (CROWD - 1) / 2;
    real *pos;
    int64_t pairs = -1;
    int32_t i;
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    (void)state;
    if (!getenv("LIMITS_TEST_FULL")) return;
    pos = NEW(real, 3 * CROWD);
    for (i = 0; i < 3 * CROWD; i++) pos[i] = (real)0.5;
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    g.max[0] = g.max[1] = g.max[2] = 1;
    g.cell = (real)0.25;
    t.kind = LBVH_POINTS;
    CHECK(ugrid_build(&grid, &g, pos, 0, CROWD) == UGRID_OK);
    CHECK(ugrid_count_pairs(&grid, (real)0.25, &pairs) == UGRID_OK && pairs == want);
    CHECK(lbvh_build(&tree, &t, pos, 0, CROWD) == LBVH_OK);
    CHECK(lbvh_count_pairs(&tree, &pairs) == LBVH_OK && pairs == want);
    ugrid_free(&grid);
    lbvh_free(&tree);
    free(pos);
}

/* ------------------------------------------------------------------------------------------------
   desc.parallel: from which size the hook is called
   ---------------------------------------------------------------------------------------------- */

typedef void any_task(void *context, int32_t index);

static void counting_run(any_task *task, void *context, int32_t tasks, void *user)
{
    int32_t i;
    ++*(int *)user;
    for (i = 0; i < tasks; i++) task(context, i);
}

static void test_hook(void **state)
{
    enum { HEAVY = 4096, LIGHT = 32768 };
    real *pos = NEW(real, 3 * LIGHT);
    ugrid grid = {0};
    ugrid_desc g = {0};
    nlist list = {0};
    nlist_desc d = {0};
    int64_t pairs;
    int32_t n;
    int calls = 0;
    (void)state;
    for (n = 0; n < 3 * LIGHT; n++) pos[n] = (real)(n % 3 ? 0.5 : n) + (real)(n % 7) / 100;
    d.radius = 1;
    g.parallel.run = d.parallel.run = counting_run;
    g.parallel.user = d.parallel.user = &calls;
    g.parallel.tasks = d.parallel.tasks = 8;
    for (n = LIGHT - 1; n <= LIGHT; n++) {
        calls = 0;
        CHECK(ugrid_build(&grid, &g, pos, 0, n) == UGRID_OK && !calls == (n < LIGHT));
        calls = 0;
        CHECK(nlist_build_pairs(&list, &d, NULL, 0, n) == NLIST_OK && !calls == (n < LIGHT));
    }
    for (n = HEAVY - 1; n <= HEAVY; n++) {
        CHECK(ugrid_build(&grid, &g, pos, 0, n) == UGRID_OK);
        calls = 0;
        CHECK(ugrid_count_pairs(&grid, 1, &pairs) == UGRID_OK && !calls == (n < HEAVY));
        calls = 0;
        CHECK(nlist_build_ugrid(&list, &d, &grid, pos, 0, n) == NLIST_OK);
        CHECK(!calls == (n < HEAVY));
    }
    nlist_free(&list);
    ugrid_free(&grid);
    free(pos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_counts),
        TEST(test_entries),
        TEST(test_cells),
        TEST(test_cells_exactly),
        TEST(test_rows_exactly),
        TEST(test_room_exactly),
        TEST(test_far_periods),
        TEST(test_many_terms),
        TEST(test_many_pairs),
        TEST(test_hook),
    };
    if (getenv("LIMITS_TEST_ONLY")) cmocka_set_test_filter(getenv("LIMITS_TEST_ONLY"));
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
