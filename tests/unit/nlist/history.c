/* history.c - a part of test_nlist.c: history and events over thousands of random steps (moves,
   renumbering, files, refusals, failing allocations), against a map that is kept by the names of
   the particles.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct world {
    oracle_scene s;
    nlist list;
    oracle_memory m;
    /* of the last build: layout, half, history, events stay or change as the steps say */
    nlist_desc d;
    heap h;
    int64_t met[4];     /* contacts that began, persisted, ended, began again, over all builds */
} world;

enum { MOVE, RENAME, SORT, EXCHANGE, GROW, SHRINK, FILE_AND_BACK, REFUSED, NO_MEMORY, AGAIN,
    STEPS };

static uint64_t current_seed;
static int current_step;

static void describe_walk(void)
{
    print_error("  NLIST_TEST_SEED=%llu, step %d\n", (unsigned long long)current_seed,
        current_step);
    describe_case();
}

static void pick_layout(nlist_desc *d)
{
    static const int32_t widths[] = {1, 2, 3, 4, 8};
    d->layout = (nlist_layout)roll(4);
    d->width = d->layout == NLIST_HYBRID ? roll(5) : widths[roll(5)];
    d->grow = 1;
}

static void pick_exclusions(oracle_scene *s)
{
    free(s->exclude);
    free(s->exclude_start);
    s->exclude = NULL;
    s->exclude_start = NULL;
    s->options &= ~ORACLE_EXCLUDE;
    if (roll(3) == 0 && s->n > 1) {
        s->options |= ORACLE_EXCLUDE;
        oracle_set_exclusions(s, &dice);
    }
}

/* The desc for the scene as it is now, with what the world has decided. */
static nlist_desc world_desc(const world *w)
{
    nlist_desc d = oracle_desc(&w->s);
    d.layout = w->d.layout;
    d.width = w->d.width;
    d.half = w->d.half;
    d.history = w->d.history;
    d.events = w->d.events;
    d.grow = 1;
    d.allocator = w->d.allocator;
    return d;
}

/* Mostly a box full of contacts; now and then hardly any particles. */
static int32_t some_particles(void) { return roll(8) ? 15 + roll(50) : 1 + roll(6); }

static void start_world(world *w)
{
    static const int32_t bytes[] = {1, 4, 13, 16, 64, 3, 200};
    int const options = (roll(2) ? ORACLE_RADII : 0) | (roll(2) ? ORACLE_SKIN : 0) |
        (roll(2) ? ORACLE_STRIDE : 0);
    memset(w, 0, sizeof *w);
    oracle_make(&w->s, ORACLE_UNIFORM, 2 + roll(2), roll(8), some_particles(), options, &dice);
    if (roll(2)) {
        w->s.options |= ORACLE_MASKS;
        oracle_set_masks(&w->s, &dice);
    }
    w->d.half = roll(2);
    w->d.history = bytes[roll(COUNT_OF(bytes))];
    w->d.events = roll(3) > 0;
    w->d.allocator = allocator_of(&w->h);
    pick_layout(&w->d);
}

static void end_world(world *w)
{
    nlist_free(&w->list);
    CHECK(w->h.live_blocks == 0 && w->h.live_bytes == 0 && !w->h.wrong);
    oracle_memory_free(&w->m);
    oracle_forget(&w->s);
}

static void put_anywhere(oracle_scene *s, int32_t i)
{
    int a;
    for (a = 0; a < s->dim; a++) oracle_point(s, i)[a] = between(s->min[a], s->max[a]);
    if (s->radii) s->radii[i] = between(0, s->radii_max);
    if (s->masks) s->masks[i] = roll(9) ? 1u << roll(3) : 0;
}

/* Most move a little, some jump. */
static void move_all(oracle_scene *s)
{
    real const most = s->cell * (roll(4) ? (real)0.05 : (real)0.5);
    int32_t i;
    int a;
    for (i = 0; i < s->n; i++) {
        if (roll(50) == 0) { put_anywhere(s, i); continue; }
        for (a = 0; a < s->dim; a++) {
            real const x = oracle_point(s, i)[a] + between(-most, most);
            if (s->periodic[a] || (x >= s->min[a] && x <= s->max[a])) oracle_point(s, i)[a] = x;
        }
    }
}

/* n particles from now on; where `from` is given, particle i is the former from[i] (-1: a new one),
   else those that there were stay. */
static void take_particles(oracle_scene *s, const int32_t *from, int32_t n)
{
    oracle_scene was = *s;
    int32_t i;
    s->n = n;
    s->pos = NEW(real, (size_t)n * s->step);
    if (was.radii) s->radii = NEW(real, n);
    if (was.masks) s->masks = NEW(uint32_t, n);
    for (i = 0; i < n; i++) {
        int32_t const k = from ? from[i] : i < was.n ? i : -1;
        put_anywhere(s, i);
        if (k < 0) continue;
        memcpy(oracle_point(s, i), oracle_point(&was, k), (size_t)s->dim * sizeof(real));
        if (s->radii) s->radii[i] = was.radii[k];
        if (s->masks) s->masks[i] = was.masks[k];
    }
    free(was.pos);
    free(was.radii);
    free(was.masks);
    s->exclude = NULL;
    s->exclude_start = NULL;
    free(was.exclude);
    free(was.exclude_start);
}

static nlist_result world_feed(world *w, const nlist_desc *d)
{
    feeder f;
    nlist_result r;
    int source;
    do source = roll(SOURCES); while (!possible(&w->s, source));
    now.source = source;
    now.desc = d;
    make_feeder(&f, &w->s, source);
    r = feed(&w->list, d, &f, &w->s);
    drop_feeder(&f);
    return r;
}

/* A build, and everything that must follow from it. */
static void world_build(world *w)
{
    nlist_desc d;
    oracle_find(&w->s);
    d = world_desc(w);
    CHECK_RESULT(world_feed(w, &d), NLIST_OK);
    oracle_name_new_ones(&w->m, w->s.n);
    check_list(&w->list, &w->s, w->m.name);
    if (w->d.events) CHECK_FINE(oracle_check_events(&w->m, &w->list));
    w->met[3] -= w->m.reborn;
    CHECK_FINE(oracle_remember(&w->m, &w->list));
    w->met[0] += w->m.begun;
    w->met[1] += w->m.persisted;
    w->met[2] += w->m.ended;
    w->met[3] += w->m.reborn;
    oracle_stamp(&w->m, &w->list, 1 + roll(3), &dice);
    CHECK_FINE(oracle_recall(&w->m, &w->list));
}

/* The list without a build: as it is in the memory. */
static void world_recall(world *w)
{
    CHECK_FINE(oracle_recall(&w->m, &w->list));
    CHECK_RESULT(nlist_validate(&w->list), NLIST_OK);
    CHECK(w->h.live_bytes == nlist_bytes(&w->list));
}

static void step_move(world *w)
{
    move_all(&w->s);
    if (roll(4) == 0) pick_layout(&w->d);
    if (roll(8) == 0) pick_exclusions(&w->s);
    if (roll(20) == 0) w->d.events = !w->d.events;
    world_build(w);
}

/* new_id for a step that keeps each with the chance of `keep` in 16, and n of them from then on. */
static int32_t *pick_names(int32_t old, int32_t n, int keep)
{
    int32_t *new_id = NEW(int32_t, old), *free_id = NEW(int32_t, n), left = n, i;
    for (i = 0; i < n; i++) free_id[i] = i;
    for (i = 0; i < old; i++) {
        int32_t const k = left ? roll((int)left) : 0;
        new_id[i] = -1;
        if (left == 0 || roll(16) >= keep) continue;
        new_id[i] = free_id[k];
        free_id[k] = free_id[--left];
    }
    free(free_id);
    return new_id;
}

static void world_remap(world *w, const int32_t *new_id, int32_t n)
{
    int32_t const old = w->s.n;
    int32_t *from = NEW(int32_t, n), i;
    for (i = 0; i < n; i++) from[i] = -1;
    for (i = 0; i < old; i++) if (new_id[i] >= 0) from[new_id[i]] = i;
    CHECK_RESULT(nlist_remap(&w->list, new_id, n), NLIST_OK);
    CHECK(w->list.n == n);
    take_particles(&w->s, from, n);
    oracle_rename(&w->m, new_id, n, 0);
    world_recall(w);
    free(from);
    if (roll(2)) oracle_stamp(&w->m, &w->list, 3, &dice);
}

static void step_rename(world *w)
{
    int32_t *new_id = pick_names(w->s.n, w->s.n, 16);
    world_remap(w, new_id, w->s.n);
    free(new_id);
}

static void step_exchange(world *w)
{
    int32_t const n = roll(20) == 0 ? 0 : roll(2) ? some_particles() : w->s.n;
    int32_t *new_id = pick_names(w->s.n, n, roll(17));
    world_remap(w, new_id, n);
    free(new_id);
    if (n == 0) take_particles(&w->s, NULL, some_particles());
    world_build(w);
}

/* The order of a grid: its permutation is what nlist_remap takes. */
static void step_sort(world *w)
{
    ugrid grid = {0};
    ugrid_desc d = oracle_ugrid_desc(&w->s);
    d.method = roll(2) ? UGRID_SORT : UGRID_COUNT;
    d.inverse = 1;
    CHECK(ugrid_build(&grid, &d, w->s.pos, w->s.stride, w->s.n) == UGRID_OK);
    world_remap(w, grid.inverse, w->s.n);
    ugrid_free(&grid);
}

static void step_grow(world *w)
{
    take_particles(&w->s, NULL, w->s.n + 1 + roll(w->s.n < 60 ? 40 : 1));
    world_build(w);
}

static void step_shrink(world *w)
{
    take_particles(&w->s, NULL, w->s.n - roll((int)(w->s.n < 20 ? w->s.n : w->s.n / 2)));
    world_build(w);
}

/* Through a file into another list, of another layout, which then is the list. */
static void step_file(world *w)
{
    nlist other = {0};
    nlist_desc d = world_desc(w);
    int64_t needed = 0;
    void *bytes;
    CHECK_RESULT(nlist_save(&w->list, NULL, 0, &needed), NLIST_BUFFER_TOO_SMALL);
    bytes = exactly((size_t)needed);
    CHECK_RESULT(nlist_save(&w->list, bytes, needed, &needed), NLIST_OK);
    pick_layout(&w->d);
    d.layout = w->d.layout;
    d.width = w->d.width;
    d.skin = w->list.desc.skin; /* 0 from pairs, which have no positions */
    now.desc = &d;
    CHECK_RESULT(nlist_load(&other, &d, bytes, needed), NLIST_OK);
    CHECK_FINE(oracle_same_order(&other, &w->list));
    nlist_free(&w->list);
    w->list = other;
    free(bytes);
    world_recall(w);
}

static void step_refused(world *w)
{
    nlist_desc d = world_desc(w);
    int32_t *new_id;
    switch (roll(5)) {
    case 0: d.radius = -1; CHECK_RESULT(world_feed(w, &d), NLIST_BAD_RADIUS); break;
    case 1: d.history++; CHECK_RESULT(world_feed(w, &d), NLIST_BAD_HISTORY); break;
    case 2:
        w->s.pos[0] = REAL_NAN;
        CHECK_RESULT(nlist_build_brute(&w->list, &d, w->s.pos, w->s.stride, w->s.n),
            NLIST_NOT_FINITE);
        CHECK(w->list.bad_id == 0);
        put_anywhere(&w->s, 0);
        break;
    case 3: d.allocator.user = w; CHECK_RESULT(world_feed(w, &d), NLIST_BAD_ALLOCATOR); break;
    default:
        new_id = pick_names(w->s.n, w->s.n, 16);
        new_id[w->s.n - 1] = w->s.n;
        CHECK_RESULT(nlist_remap(&w->list, new_id, w->s.n), NLIST_BAD_INDEX);
        free(new_id);
    }
    world_recall(w);
}

/* Memory is refused at some time of a build in which the list has to grow. */
static void step_no_memory(world *w)
{
    nlist_desc d;
    nlist_result r;
    int32_t const n = w->s.n;
    take_particles(&w->s, NULL, 3 * n + 40);
    pick_layout(&w->d);
    d = world_desc(w);
    w->h.fail_at = w->h.calls + 1 + roll(12);
    r = world_feed(w, &d);
    w->h.fail_at = 0;
    take_particles(&w->s, NULL, n);
    if (r == NLIST_OUT_OF_MEMORY) { world_recall(w); return; }
    CHECK_RESULT(r, NLIST_OK);
    nlist_free(&w->list);
    oracle_memory_free(&w->m);
    world_build(w);
}

static void step_again(world *w)
{
    nlist_free(&w->list);
    CHECK(w->h.live_blocks == 0);
    oracle_memory_free(&w->m);
    world_build(w);
}

static void random_step(world *w)
{
    static const uint8_t chance[STEPS] = {58, 5, 5, 8, 4, 3, 5, 5, 5, 2};
    static void (*const steps[STEPS])(world *) = {step_move, step_rename, step_sort, step_exchange,
        step_grow, step_shrink, step_file, step_refused, step_no_memory, step_again};
    int kind = 0, left = roll(100);
    while (left >= chance[kind]) left -= chance[kind++];
    steps[kind](w);
}

/* A walk of some hundred steps through one world. Adds to the counts of what has been met. */
static void random_walk(uint64_t seed, int steps, int64_t met[4])
{
    world w;
    int k;
    current_seed = seed;
    dice = wl_seed(seed);
    start_world(&w);
    now.scene = &w.s;
    world_build(&w);
    for (current_step = 0; current_step < steps; current_step++) random_step(&w);
    for (k = 0; k < 4; k++) met[k] += w.met[k];
    end_world(&w);
}

static void test_random_walks(void **state)
{
    int const steps = environment("NLIST_TEST_STEPS", 12000 / share()), walks = steps / 150 + 1;
    uint64_t const seed = (uint64_t)environment("NLIST_TEST_SEED", 0);
    int64_t met[4] = {0, 0, 0, 0};
    int k;
    (void)state;
    describe = describe_walk;
    for (k = 0; k < (seed ? 1 : walks); k++)
        random_walk(seed ? seed : 1000 + (uint64_t)k, 150, met);
    CHECK(seed || share() > 4 ||
        (met[0] > 10000 && met[1] > 10000 && met[2] > 10000 && met[3] > 5000));
}

/* Two particles meet, part and meet again, for every number of bytes, layout, and with half and
   full: by hand. */
static void test_born_and_dead(void **state)
{
    static const int32_t bytes[] = {1, 2, 3, 4, 13, 16, 64, 4096};
    static const real apart[] = {(real)0.5, (real)0.75, 3, (real)0.5, 3, 3, 1};
    static const int64_t want[][NLIST_EVENT_KINDS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0},
        {0, 0, 1}, {0, 0, 0}, {1, 0, 0}};
    int k, layout, half, step, kind, b;
    (void)state;
    for (k = 0; k < COUNT_OF(bytes); k++) for (layout = 0; layout < 4; layout++)
            for (half = 0; half < 2; half++) {
        nlist list = {0};
        nlist_desc d;
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = half;
        d.history = bytes[k];
        d.events = 1;
        d.layout = (nlist_layout)layout;
        for (step = 0; step < COUNT_OF(apart); step++) {
            real pos[6] = {0, 0, 0, 0, 0, 0};
            uint8_t *h;
            pos[3] = apart[step];
            CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
            for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
                CHECK(list.event_count[kind] == want[step][kind]);
                if (want[step][kind])
                    CHECK(list.event[kind][0].i == 0 && list.event[kind][0].j == 1);
            }
            CHECK((nlist_find(&list, 0, 1) >= 0) == (apart[step] <= 1));
            CHECK((nlist_find(&list, 1, 0) >= 0) == (apart[step] <= 1 && !half));
            CHECK((nlist_find_pair(&list, 1, 0) >= 0) == (apart[step] <= 1) &&
                nlist_find(&list, 0, 0) == -1);
            if (want[step][NLIST_ENDED]) {
                h = (uint8_t *)nlist_history_before(&list, list.event[NLIST_ENDED][0].entry);
                for (b = 0; b < bytes[k]; b++) CHECK(h[b] == (uint8_t)(step + b));
            }
            if (apart[step] > 1) continue;
            h = (uint8_t *)nlist_history(&list, nlist_find(&list, 0, 1));
            for (b = 0; b < bytes[k]; b++) {
                CHECK(h[b] == (want[step][NLIST_BEGUN] ? 0 : (uint8_t)(step + b)));
                h[b] = (uint8_t)(step + 1 + b);
            }
        }
        nlist_free(&list);
    }
}

/* The row of particle 0 in a build from pairs: partners 1 .. n without those of which `gap` is a
   divisor (0: all), which a remap that turns all ids round has named anew before (turned). */
static void long_row(nlist *list, const nlist_desc *d, int32_t n, int32_t gap, int turned)
{
    int32_t pair[2 * 300], new_id[301], p, m = 0;
    if (turned) {
        for (p = 0; p <= n; p++) new_id[p] = p == 0 ? 0 : n + 1 - p;
        CHECK_RESULT(nlist_remap(list, new_id, n + 1), NLIST_OK);
    }
    for (p = 1; p <= n; p++) {
        if (gap && p % gap == 0) continue;
        pair[2 * m] = 0;
        pair[2 * m++ + 1] = p;
    }
    CHECK_RESULT(nlist_build_pairs(list, d, pair, m, n + 1), NLIST_OK);
}

/* Rows of 300 in which all persist, turn round, begin and end: each keeps its own number. */
static void test_long_rows(void **state)
{
    int32_t const n = 300;
    int layout, events, turned;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (events = 0; events < 2; events++)
            for (turned = 0; turned < 2; turned++) {
        nlist list = {0};
        nlist_each e;
        nlist_desc d;
        int32_t last = 0, k;
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = 1;
        d.layout = (nlist_layout)layout;
        d.width = layout == NLIST_STATIC ? 512 : layout == NLIST_HYBRID ? 4 : 0;
        d.history = sizeof(int32_t);
        d.events = events;
        long_row(&list, &d, n, 3, 0);           /* 1 2 4 5 7 ... */
        for (e = nlist_of(&list, 0); nlist_next(&e);) memcpy(e.history, &e.id, sizeof e.id);
        long_row(&list, &d, n, 5, turned);
        for (e = nlist_of(&list, 0), k = 0; nlist_next(&e); k++) {
            int32_t const was = turned ? n + 1 - e.id : e.id;
            int32_t kept;
            memcpy(&kept, e.history, sizeof kept);
            CHECK(kept == (was % 3 == 0 ? 0 : was));
            CHECK(e.id > last);
            last = e.id;
        }
        CHECK(k == n - n / 5);
        for (k = 0; events && k < list.event_count[NLIST_ENDED]; k++) {
            nlist_event const ended = list.event[NLIST_ENDED][k];
            CHECK(ended.j % 5 == 0 && (turned ? n + 1 - ended.j : ended.j) % 3 != 0);
        }
        if (events)
            CHECK(list.event_count[NLIST_PERSISTED] == 160 && list.event_count[NLIST_BEGUN] == 80 &&
                list.event_count[NLIST_ENDED] == 40);
        nlist_free(&list);
    }
}
