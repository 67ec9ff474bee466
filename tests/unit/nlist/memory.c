/* memory.c - a part of test_nlist.c: allocations. One that fails leaves the list as it was;
   arrays grow by a factor; after a reserve nothing is allocated; the number of bytes is as
   documented.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What the manual says of the arrays of one list. */
static int64_t bytes_by_hand(const nlist_desc *d, int32_t n, int64_t rest)
{
    int64_t const width = d->width, per_entry = d->layout == NLIST_COMPACT ? 4 : 12;
    int64_t const skin = d->skin > 0 ? (int64_t)sizeof(real) * d->dim * n : 0;
    int64_t const history = d->history *
        ((d->layout == NLIST_STATIC || d->layout == NLIST_HYBRID ? n * width : 0) + rest);
    switch (d->layout) {
    case NLIST_STATIC: return (4 + 4 * width) * n + skin + history;
    case NLIST_DYNAMIC: return 12 * n + per_entry * rest + skin + history;
    case NLIST_COMPACT: return 12 * n + 8 + per_entry * rest + skin + history;
    default: return (8 + 4 * width) * n + per_entry * rest + skin + history;
    }
}

static int64_t bytes_of_arrays(const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    int64_t const entries = rows->capacity + (int64_t)rows->n * rows->width;
    int64_t bytes = 0;
    if (rows->count) bytes += 4 * rows->n;
    if (rows->slot) bytes += 4 * (int64_t)rows->n * rows->width;
    if (rows->start) bytes += 8 * ((int64_t)rows->n + 1);
    if (rows->partner) bytes += 4 * rows->capacity;
    if (rows->own) bytes += 4 * rows->capacity;
    if (rows->link) bytes += 4 * rows->capacity;
    if (rows->head) bytes += 4 * rows->n;
    if (rows->touched) bytes += 4 * rows->n;
    if (rows->history) bytes += entries * list->desc.history;
    return bytes + (list->desc.skin > 0 ? (int64_t)sizeof(real) * rows->n * list->desc.dim : 0);
}

/* After a reserve, builds up to its sizes take no memory, from whatever source (pairs: once, to
   sort them); and the arrays are as large as the manual says. */
static void check_reserve(const oracle_scene *s, const nlist_desc *given, const ugrid *grid,
    const lbvh *tree, const int32_t *pairs, int64_t m)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    nlist_desc d = *given;
    int64_t calls, entries;
    int round;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(nlist_build_brute(&list, &d, s->pos, s->stride, s->n), NLIST_OK);
    entries = list.needed_entries;
    CHECK(bytes_of_arrays(&list) == bytes_by_hand(&d, s->n, entries));
    CHECK(h.live_bytes == nlist_bytes(&list));
    nlist_free(&list);
    CHECK(h.live_blocks == 0);
    CHECK_RESULT(nlist_reserve(&list, &d, s->n, entries), NLIST_OK);
    CHECK(list.n == 0 && h.live_bytes == nlist_bytes(&list));
    calls = h.calls;
    for (round = 0; round < 3; round++) {
        CHECK_RESULT(nlist_build_brute(&list, &d, s->pos, s->stride, s->n), NLIST_OK);
        CHECK_RESULT(nlist_build_lbvh(&list, &d, tree, s->pos, s->stride, s->n), NLIST_OK);
        CHECK(h.calls == calls && "brute force and trees take no memory");
        CHECK_RESULT(nlist_build_ugrid(&list, &d, grid, s->pos, s->stride, s->n), NLIST_OK);
        CHECK(h.calls == calls && "grids take no memory");
        if (d.skin > 0) continue;
        CHECK_RESULT(nlist_build_pairs(&list, &d, pairs, m, s->n), NLIST_OK);
        CHECK(h.calls <= calls + (round == 0 ? 2 : 0));
        calls = h.calls;
    }
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    CHECK(h.live_bytes == nlist_bytes(&list));
    nlist_free(&list);
    CHECK(h.live_blocks == 0 && h.calls == h.frees && !h.wrong);
}

static void test_reserve(void **state)
{
    nlist full = {0};
    ugrid grid = {0};
    lbvh tree = {0};
    oracle_scene s;
    ugrid_desc g;
    lbvh_desc t;
    nlist_desc d;
    int32_t *pairs;
    int64_t m;
    int options;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, 3, 1, 120, ORACLE_STRIDE, &dice);
    g = oracle_ugrid_desc(&s);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_POINTS;
    CHECK(ugrid_build(&grid, &g, s.pos, s.stride, s.n) == UGRID_OK &&
        lbvh_build(&tree, &t, s.pos, s.stride, s.n) == LBVH_OK);
    d = oracle_desc(&s);
    CHECK_RESULT(nlist_build_brute(&full, &d, s.pos, s.stride, s.n), NLIST_OK);
    pairs = oracle_pairs(&full, &dice, &m);
    for (options = 0; options < 64; options++) {
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(options % 4);
        d.width = d.layout == NLIST_STATIC ? 120 : 2;
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 12 : 0;
        d.events = options >> 4 & 1;
        d.skin = options & 32 ? s.radius / 4 : 0;
        if (options & 32) d.radius -= d.skin;
        check_reserve(&s, &d, &grid, &tree, pairs, m);
    }
    free(pairs);
    nlist_free(&full);
    ugrid_free(&grid);
    lbvh_free(&tree);
    oracle_forget(&s);
}

/* A half list of few pairs, then one whose rows a grid passes on in pieces (n > 2048, all near). */
static void test_reserve_long_rows(void **state)
{
    enum { N = 2300 };
    real *pos = NEW(real, 3 * N);
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid grid = {0};
    nlist list = {0};
    nlist_desc d;
    int64_t calls;
    int32_t i;
    (void)state;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.half = 1;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(nlist_reserve(&list, &d, N, (int64_t)N * (N - 1) / 2), NLIST_OK);
    calls = h.calls;
    for (i = 0; i < 3 * N; i++) pos[i] = (real)i;
    CHECK(ugrid_build(&grid, NULL, pos, 0, N) == UGRID_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, N), NLIST_OK);
    CHECK(list.total == 0);
    memset(pos, 0, 3 * N * sizeof *pos);
    CHECK(ugrid_build(&grid, NULL, pos, 0, N) == UGRID_OK);
    CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, pos, 0, N), NLIST_OK);
    CHECK(list.total == (int64_t)N * (N - 1) / 2);
    CHECK(h.calls == calls);
    nlist_free(&list);
    ugrid_free(&grid);
    free(pos);
}

static void *saved(const nlist *list, int64_t *size)
{
    void *bytes;
    int64_t needed = -1;
    CHECK_RESULT(nlist_save(list, NULL, 0, size), NLIST_BUFFER_TOO_SMALL);
    bytes = exactly((size_t)*size);
    CHECK_RESULT(nlist_save(list, bytes, *size - 1, &needed), NLIST_BUFFER_TOO_SMALL);
    CHECK(needed == *size && ((uint8_t *)bytes)[0] == 0xA5);
    CHECK_RESULT(nlist_save(list, bytes, *size, &needed), NLIST_OK);
    CHECK(needed == *size);
    return bytes;
}

/* How often each block of a list got other memory. */
typedef struct growths { size_t bytes[NLIST_BLOCKS]; int times[NLIST_BLOCKS]; } growths;

static int64_t count_growths(growths *g, const nlist *list)
{
    int64_t sum = 0;
    int b;
    for (b = 0; b < NLIST_BLOCKS; b++) {
        g->times[b] += list->block[b].bytes != g->bytes[b];
        g->bytes[b] = list->block[b].bytes;
        sum += g->times[b];
    }
    return sum;
}

static int adds_nothing(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)user;
    (void)i;
    (void)j;
    (void)history;
    (void)own;
    (void)other;
    return 0;
}

/* Builds with one more particle each, their sums, names and files: no array gets other memory more
   often than a logarithm tells. */
static void check_growth(int options)
{
    /* half as much again: 2 + log(300) / log(1.5) = 16.1 times, and a few more for small sizes */
    enum { MOST = 600, LIMIT = 20 };
    heap h = {0, 0, 0, 0, 0, 0};
    real *pos = ZEROS(real, 3 * MOST), *sums = ZEROS(real, MOST);
    int32_t *same_names = NEW(int32_t, MOST), *pair = NEW(int32_t, 2 * MOST), i;
    nlist list = {0}, loaded = {0};
    growths g, g_loaded;
    nlist_desc d = plain_desc(), given;
    nlist_sums how = {1, NLIST_PER_CONTACT, 0.5};
    memset(&g, 0, sizeof g);
    memset(&g_loaded, 0, sizeof g_loaded);
    d.layout = (nlist_layout)(options % 4);
    d.width = options % 4 == NLIST_STATIC ? 2 : 1;
    d.half = options >> 2 & 1;
    d.history = options & 8 ? 12 : 0;
    d.events = options >> 3 & 1;
    d.skin = options & 16 ? (real)0.25 : 0;
    d.allocator = allocator_of(&h);
    given = d;
    given.events = 0;
    for (i = 0; i < MOST; i++) {
        pos[3 * i] = (real)i;
        same_names[i] = i;
        pair[2 * i] = i;
        pair[2 * i + 1] = i + 1;
    }
    for (i = 1; i <= MOST; i++) {
        int64_t size = 0, changed;
        void *bytes;
        if (options & 16 && i % 10) continue; /* brute force for the skin: not each number */
        if (options & 16) CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, i), NLIST_OK);
        else CHECK_RESULT(nlist_build_pairs(&list, &d, pair, i - 1, i), NLIST_OK);
        CHECK_RESULT(nlist_sum(&list, &how, adds_nothing, NULL, sums), NLIST_OK);
        CHECK_RESULT(nlist_remap(&list, same_names, i), NLIST_OK);
        CHECK(list.n == i && list.total == (d.half ? i - 1 : 2 * (i - 1)));
        bytes = saved(&list, &size);
        CHECK_RESULT(nlist_load(&loaded, &given, bytes, size), NLIST_OK);
        free(bytes);
        changed = count_growths(&g, &list) + count_growths(&g_loaded, &loaded);
        CHECK(h.calls <= 2 * changed); /* twice in one step, at most */
    }
    for (i = 0; i < NLIST_BLOCKS; i++) CHECK(g.times[i] <= LIMIT && g_loaded.times[i] <= LIMIT);
    CHECK(h.live_bytes == nlist_bytes(&list) + nlist_bytes(&loaded));
    nlist_free(&list);
    nlist_free(&loaded);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(pos);
    free(sums);
    free(same_names);
    free(pair);
}

static void test_growth(void **state)
{
    SLOW_TEST();
    int options;
    (void)state;
    for (options = 0; options < 32; options++)
        /* two layouts half, two full */
        if ((options >> 2 & 1) == (options & 1)) check_growth(options);
}

/* A reserve takes exactly what it says, also where memory is held already; and the first build what
   it needs. */
static void test_exact_memory(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 16; options++) {
        nlist first = {0}, again = {0};
        nlist_desc d = plain_desc();
        int b;
        d.layout = (nlist_layout)(options % 4);
        d.half = options >> 2 & 1;
        d.history = options & 8 ? 12 : 0;
        d.events = options >> 3 & 1;
        CHECK_RESULT(nlist_reserve(&first, &d, 500, 700), NLIST_OK);
        CHECK_RESULT(nlist_reserve(&again, &d, 400, 600), NLIST_OK);
        CHECK_RESULT(nlist_reserve(&again, &d, 500, 700), NLIST_OK);
        for (b = 0; b < NLIST_BLOCKS; b++) CHECK(first.block[b].bytes == again.block[b].bytes);
        nlist_free(&first);
        CHECK_RESULT(nlist_build_brute(&first, &d, four, 0, 4), NLIST_OK);
        CHECK(first.block[first.current * NLIST_I_GENERATION + NLIST_I_COUNT].bytes == 4 *
            sizeof(int32_t));
        nlist_free(&first);
        nlist_free(&again);
    }
}

/* An allocator that has no block above `most` bytes. */
typedef struct small_heap { heap h; size_t most; } small_heap;

static void *small_alloc(size_t bytes, void *user)
{
    return bytes > ((small_heap *)user)->most ? NULL : heap_alloc(bytes, user);
}

/* Where there is no memory for half as much again, what is needed will do. */
static void test_tight_memory(void **state)
{
    real *pos = ZEROS(real, 3 * 110);
    small_heap h;
    nlist list = {0};
    nlist_desc d = plain_desc();
    int32_t i;
    (void)state;
    memset(&h, 0, sizeof h);
    h.most = 110 * 16 * sizeof(int32_t);
    for (i = 0; i < 110; i++) pos[3 * i] = (real)i;
    d.layout = NLIST_STATIC;
    d.allocator.alloc = small_alloc;
    d.allocator.free = heap_free;
    d.allocator.user = &h;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 100), NLIST_OK);
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 110), NLIST_OK);
    CHECK(list.total == 218 && list.block[NLIST_I_SLOT].bytes == h.most);
    h.most--;
    nlist_free(&list);
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 110), NLIST_OUT_OF_MEMORY);
    nlist_free(&list);
    CHECK(h.h.live_blocks == 0 && !h.h.wrong);
    free(pos);
}

/* Steps that may each run out of memory: then the list is as it was, or, where it is not kept
   twice, empty; and the same step works the next time. */
typedef struct trial {
    heap *h;
    nlist list;
    nlist_desc d;
    int failures;
    oracle_snapshot before;
} trial;

static int failed(trial *t, nlist_result r)
{
    int64_t const calls = t->h->calls, failing = t->h->fail_at;
    CHECK(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY);
    t->failures += r == NLIST_OUT_OF_MEMORY;
    if (r == NLIST_OUT_OF_MEMORY && (t->list.n != 0 || t->d.history))
        CHECK_FINE(oracle_check_unchanged(&t->before, &t->list));
    t->h->fail_at = 0; /* the test's own look at it does not count */
    CHECK_RESULT(nlist_validate(&t->list), t->list.built ? NLIST_OK : NLIST_NOT_BUILT);
    CHECK(t->list.built || t->list.n == 0);
    t->h->calls = calls;
    t->h->fail_at = failing;
    oracle_drop_snapshot(&t->before);
    CHECK(t->h->live_bytes == nlist_bytes(&t->list) && !t->h->wrong);
    oracle_take(&t->before, &t->list);
    return r == NLIST_OUT_OF_MEMORY;
}

static void write_history(nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n && list->desc.history; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e))
            oracle_write(e.history, list->desc.history, (uint32_t)(100 * i + e.id + 1));
    }
}

static void trial_build(trial *t, const oracle_scene *s, int32_t n)
{
    if (failed(t, nlist_build_brute(&t->list, &t->d, s->pos, s->stride, n)))
        CHECK(!failed(t, nlist_build_brute(&t->list, &t->d, s->pos, s->stride, n)));
    write_history(&t->list);
    oracle_drop_snapshot(&t->before);
    oracle_take(&t->before, &t->list);
}

static void trial_pairs(trial *t, int32_t n)
{
    static const int32_t pair[] = {0, 1, 4, 2, 3, 1, 1, 0};
    nlist_desc d = t->d;
    d.skin = 0;
    if (failed(t, nlist_build_pairs(&t->list, &d, pair, 4, n)))
        CHECK(!failed(t, nlist_build_pairs(&t->list, &d, pair, 4, n)));
}

static void trial_remap(trial *t, int32_t n)
{
    int32_t *new_id = NEW(int32_t, t->list.n), i;
    for (i = 0; i < t->list.n; i++) new_id[i] = i < n ? n - 1 - i : -1;
    if (failed(t, nlist_remap(&t->list, new_id, n)))
        CHECK(!failed(t, nlist_remap(&t->list, new_id, n)));
    free(new_id);
}

static int add_one(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)user;
    (void)i;
    (void)j;
    (void)history;
    own[0] = other[0] = 1;
    return 1;
}

static void trial_sum(trial *t)
{
    real *sums = NEW(real, t->list.n);
    nlist_sums how;
    int32_t k;
    nlist_result r;
    for (k = 0; k < t->list.n; k++) sums[k] = 0;
    how.values = 1;
    how.mode = NLIST_PER_CONTACT;
    how.unit = 0.5;
    r = nlist_sum(&t->list, &how, add_one, NULL, sums);
    for (k = 0; k < t->list.n && r == NLIST_OUT_OF_MEMORY; k++) CHECK(!(sums[k] > 0));
    if (failed(t, r)) CHECK(!failed(t, nlist_sum(&t->list, &how, add_one, NULL, sums)));
    free(sums);
}

static void trial_load(trial *t, const void *bytes, int64_t size)
{
    if (failed(t, nlist_load(&t->list, &t->d, bytes, size)))
        CHECK(!failed(t, nlist_load(&t->list, &t->d, bytes, size)));
}

static void trial_reserve(trial *t, int32_t n)
{
    nlist_result r = nlist_reserve(&t->list, &t->d, n, 30);
    t->failures += r == NLIST_OUT_OF_MEMORY;
    CHECK((r == NLIST_OK || r == NLIST_OUT_OF_MEMORY) && t->list.n == 0);
    oracle_drop_snapshot(&t->before);
    oracle_take(&t->before, &t->list);
    CHECK(!failed(t, nlist_reserve(&t->list, &t->d, n, 30)));
}

/* Returns how many steps ran out of memory. */
static int memory_scenario(heap *h, const oracle_scene *s, int options)
{
    trial t;
    void *bytes;
    int64_t size;
    nlist_result r;
    memset(&t, 0, sizeof t);
    t.h = h;
    t.d = oracle_desc(s);
    t.d.allocator = allocator_of(h);
    t.d.layout = (nlist_layout)(options % 4);
    t.d.width = 2;
    t.d.grow = 1;
    t.d.half = options >> 2 & 1;
    t.d.history = options & 8 ? 5 : 0;
    t.d.events = options >> 4 & 1;
    oracle_take(&t.before, &t.list);
    if (options & 1) trial_reserve(&t, 7);
    trial_build(&t, s, 5);
    trial_build(&t, s, s->n);
    trial_sum(&t);
    bytes = saved(&t.list, &size);
    trial_remap(&t, s->n);
    trial_remap(&t, s->n + 4);
    trial_build(&t, s, 9);
    if (s->skin <= 0) trial_pairs(&t, 12);
    trial_load(&t, bytes, size);
    trial_build(&t, s, s->n);
    r = nlist_validate(&t.list);
    t.failures += r == NLIST_OUT_OF_MEMORY;
    CHECK(r == NLIST_OK || r == NLIST_OUT_OF_MEMORY);
    nlist_free(&t.list);
    oracle_drop_snapshot(&t.before);
    free(bytes);
    return t.failures;
}

static void test_out_of_memory(void **state)
{
    int options;
    (void)state;
    for (options = 0; options < 32; options++) {
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s;
        int64_t total, k;
        oracle_make(&s, ORACLE_CLUSTERED, 2 + options % 2, options / 4, 24,
            options % 3 ? 0 : ORACLE_SKIN, &dice);
        CHECK(memory_scenario(&h, &s, options) == 0 && h.calls > 10);
        total = h.calls;
        for (k = 1; k <= total; k++) {
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            CHECK(memory_scenario(&h, &s, options) <= 1);
            CHECK(h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong && h.calls >= k);
        }
        oracle_forget(&s);
    }
}

/* A file that needs more memory than the list has: the list stays, whatever is missing. */
static void test_load_out_of_memory(void **state)
{
    nlist large = {0};
    oracle_scene s;
    nlist_desc d;
    int64_t size, k;
    void *bytes;
    int layout;
    (void)state;
    oracle_make(&s, ORACLE_UNIFORM, 3, 0, 60, 0, &dice);
    d = oracle_desc(&s);
    d.half = 1;
    d.history = 12;
    CHECK_RESULT(nlist_build_brute(&large, &d, s.pos, s.stride, s.n), NLIST_OK);
    bytes = saved(&large, &size);
    for (layout = 0; layout < 4; layout++) for (k = 1; k < 100; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        oracle_snapshot before;
        nlist_desc small = full_list(&list, (nlist_layout)layout, &h);
        nlist_result r;
        oracle_take(&before, &list);
        small.grow = 1;
        h.fail_at = h.calls + k;
        r = nlist_load(&list, &small, bytes, size);
        if (r == NLIST_OK) CHECK_FINE(oracle_same_order(&list, &large));
        else CHECK_RESULT(r, NLIST_OUT_OF_MEMORY);
        if (r != NLIST_OK) check_still_there(&list, &before);
        oracle_drop_snapshot(&before);
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
        if (r == NLIST_OK) break;
    }
    CHECK(k > 3 && k < 100);
    free(bytes);
    nlist_free(&large);
    oracle_forget(&s);
}

/* Memory goes back to where it came from: another allocator is refused as long as there is some. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_COMPACT, &h), second = d, none = d;
    oracle_snapshot before;
    int64_t size;
    void *bytes = saved(&list, &size);
    (void)state;
    oracle_take(&before, &list);
    memset(&none.allocator, 0, sizeof none.allocator);
    second.allocator = allocator_of(&other);
    CHECK_RESULT(nlist_build_brute(&list, &none, four, 0, 4), NLIST_BAD_ALLOCATOR);
    CHECK_RESULT(nlist_build_brute(&list, &second, four, 0, 4), NLIST_BAD_ALLOCATOR);
    CHECK_RESULT(nlist_load(&list, &second, bytes, size), NLIST_BAD_ALLOCATOR);
    check_still_there(&list, &before);
    CHECK_RESULT(nlist_reserve(&list, &second, 4, 4), NLIST_BAD_ALLOCATOR);
    CHECK(h.live_bytes == nlist_bytes(&list) && h.live_bytes > 0);
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    nlist_free(&list);
    CHECK(h.live_blocks == 0 && !h.wrong && other.calls == 0);
    CHECK_RESULT(nlist_build_brute(&list, &second, four, 0, 4), NLIST_OK);
    nlist_free(&list);
    CHECK(other.live_blocks == 0 && other.calls > 0);
    oracle_drop_snapshot(&before);
    free(bytes);
}

/* Memory that is not aligned is refused, and given back. */
static void test_crooked_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    (void)state;
    d.allocator.alloc = crooked_alloc;
    d.allocator.free = crooked_free;
    d.allocator.user = &h;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_BAD_ALLOCATOR);
    CHECK(list.n == 0 && h.live_blocks == 0 && h.calls > 0 && !h.wrong);
    nlist_free(&list);
}

/* After nlist_reserve a full list is an empty one. */
static void test_reserved_is_empty(void **state)
{
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_COMPACT, NULL);
    int64_t needed = -1;
    (void)state;
    CHECK(list.total > 0);
    CHECK_RESULT(nlist_reserve(&list, &d, 9, 9), NLIST_OK);
    CHECK(list.n == 0 && list.total == 0 && list.event_count[0] == 0 && list.event_count[1] == 0 &&
        list.event_count[2] == 0);
    CHECK_RESULT(nlist_pairs(&list, NULL, 0, &needed, NULL, 0, NULL), NLIST_NOT_BUILT);
    CHECK(needed == 0);
    nlist_free(&list);
}

/* A reserve whose desc is refused leaves the list, with its rows and history, as it was. */
static void test_refused_reserve(void **state)
{
    nlist list = {0};
    nlist_desc d = full_list(&list, NLIST_COMPACT, NULL);
    int32_t const n = list.n;
    int64_t const total = list.total;
    (void)state;
    d.dim = 7;
    CHECK_RESULT(nlist_reserve(&list, &d, 9, 9), NLIST_BAD_DIM);
    CHECK(list.n == n && list.total == total && total > 0 && list.built == 1);
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    CHECK(list.rows[list.current].n == n && list.rows[list.current].partner);
    nlist_free(&list);
}
