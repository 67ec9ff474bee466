/* memory.c - a part of test_nbody.c: one object with many builds gives what a new one gives;
   allocations that fail; growth by a factor; after a reserve nothing is allocated.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Forces are the same, whatever was in the memory before: other methods, other sizes, other
   laws. */
static void test_reuse(void **state)
{
    nbody sim = {0};
    heap h = {0, 0, 0, 0, 0, 0};
    int step, steps = small_run() ? 20 : SANITIZED ? 60 : 120;
    int64_t most = 0;
    (void)state;
    for (step = 0; step < steps; step++) {
        int32_t const n = roll(4) ? roll(300) : roll(5);
        oracle_scene s = scene_of(n);
        nbody fresh = {0};
        nbody_desc d = desc_of(roll(KINDS));
        real *acc = NEW(real, 2 * n), *again = NEW(real, 2 * n), *potential = NEW(real, n),
            *other = NEW(real, n);
        int const potentials = roll(2);
        if (d.order == 4 && d.sources == NBODY_SOURCES_AUTO) d.order = 2 + roll(4);
        d.law = (nbody_law)roll(2);
        d.softening = roll(2) ? (real)0.01 : 0;
        d.levels = roll(2) ? 0 : 1 + roll(6);
        CHECK_RESULT(nbody_fields(&fresh, &d, s.pos, 0, s.mass, n, acc,
            potentials ? potential : NULL), NBODY_OK);
        d.allocator = allocator_of(&h);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, n, again, potentials ? other : NULL),
            NBODY_OK);
        CHECK(same(acc, again, 2 * (size_t)n * sizeof(real)));
        if (potentials) CHECK(same(potential, other, (size_t)n * sizeof(real)));
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        CHECK(h.live_bytes == nbody_bytes(&sim) && h.live_bytes >= most); /* it is kept */
        most = h.live_bytes;
        nbody_free(&fresh);
        oracle_forget(&s);
        free(acc);
        free(again);
        free(potential);
        free(other);
    }
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && h.calls == h.frees && !h.wrong);
    nbody_free(&sim);
    nbody_free(NULL);
    CHECK(nbody_bytes(&sim) == 0 && nbody_bytes(NULL) == 0);
}

/* Tables that are kept belong to their law, order and softening: every change of these gives what a
   new nbody gives. */
static void test_kept_tables(void **state)
{
    enum { N = 150, KINDS_OF_TABLES = 16 };
    oracle_scene s = scene_of(N);
    nbody sim = {0};
    int from, to, step;
    (void)state;
    for (from = 0; from < KINDS_OF_TABLES; from++) for (to = 0; to < KINDS_OF_TABLES; to++) {
        if (small_run() && (from + to) % 9) continue;
        for (step = 0; step < 2; step++) {
            int const kind = step ? to : from, potentials = kind >> 3;
            real acc[2 * N], again[2 * N], potential[N];
            nbody fresh = {0};
            nbody_desc d = desc_of(KIND_C4);
            d.order = kind & 1 ? 3 : 2;
            d.law = (nbody_law)(kind >> 1 & 1);
            d.softening = kind & 4 ? (real)0.05 : 0;
            CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, N, acc,
                potentials ? potential : NULL), NBODY_OK);
            if (!step) continue;
            CHECK_RESULT(nbody_fields(&fresh, &d, s.pos, 0, s.mass, N, again,
                potentials ? potential : NULL), NBODY_OK);
            CHECK(same(acc, again, sizeof acc));
            nbody_free(&fresh);
        }
    }
    nbody_free(&sim);
    oracle_forget(&s);
}

/* One call after another on one nbody, each with the bits of a fresh one. */
static void check_in_turn(nbody *sim, const nbody_desc *d, const oracle_scene *s, int potentials)
{
    size_t const n = (size_t)s->n;
    real *acc = NEW(real, 2 * n), *again = NEW(real, 2 * n), *phi = NEW(real, n),
         *phi_again = NEW(real, n);
    nbody fresh = {0};
    CHECK_RESULT(nbody_fields(sim, d, s->pos, 0, s->mass, s->n, acc, potentials ? phi : NULL),
        NBODY_OK);
    CHECK_RESULT(nbody_fields(&fresh, d, s->pos, 0, s->mass, s->n, again,
        potentials ? phi_again : NULL), NBODY_OK);
    CHECK(same(acc, again, 2 * n * sizeof *acc));
    CHECK(!potentials || same(phi, phi_again, n * sizeof *phi));
    nbody_free(&fresh);
    free(acc);
    free(again);
    free(phi);
    free(phi_again);
}

/* Tables of a softened law are kept while square and softening stay: the second call does not
   repair a table that was spoilt. What has changed is filled anew. */
static void test_softened_tables(void **state)
{
    oracle_scene s = scene_of(60);
    nbody_desc d = desc_of(KIND_C4);
    real first[120], second[120];
    nbody sim = {0};
    int k;
    (void)state;
    d.levels = 5;
    d.leaf = 0;
    d.size = 1;
    d.softening = (real)0.02;
    for (k = 0; k < 4; k++) {
        uint64_t const three = 28; /* levels 2, 3 and 4 */
        d.law = (nbody_law)(k & 1);
        check_in_turn(&sim, &d, &s, k > 1);
        CHECK(sim.kept.levels == three && sim.kept.slots == 3);
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, first), NBODY_OK);
        memset(sim.block[NBODY_I_TABLE].memory, 0, sim.block[NBODY_I_TABLE].bytes);
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, second), NBODY_OK);
        CHECK(!same(first, second, sizeof first));
        d.softening *= (real)1.5;
        check_in_turn(&sim, &d, &s, k > 1);
    }
    d.size = 2; /* another square, then more levels, and bodies outside: a fitted square */
    check_in_turn(&sim, &d, &s, 1);
    d.levels = 7;
    check_in_turn(&sim, &d, &s, 0);
    CHECK(sim.kept.slots == 5);
    s.pos[0] = 3;
    check_in_turn(&sim, &d, &s, 0);
    s.pos[0] = 0;
    d.order = 12; /* too large for a table of each level */
    for (k = 0; k < (small_run() ? 0 : 2); k++) check_in_turn(&sim, &d, &s, k);
    CHECK(small_run() || sim.kept.slots == (IS_FLOAT ? 2 : 1));
    nbody_free(&sim);
    oracle_forget(&s);
}

/* Tables without logarithms are not taken for those with: a potential, forces on another square,
   and a potential there. */
static void test_tables_without_logarithms(void **state)
{
    oracle_scene s = scene_of(60);
    nbody_desc d = desc_of(KIND_C4);
    real acc[120], potential[2][60];
    nbody sim = {0}, fresh = {0};
    int k;
    (void)state;
    d.levels = 5;
    d.leaf = 0;
    d.softening = (real)0.02;
    for (k = 1; k < 3; k++) {
        d.law = (nbody_law)k;
        d.size = (real)1.25; /* and 1.75: the same unit of length */
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, acc, potential[0]), NBODY_OK);
        d.size = (real)1.75;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, acc, potential[0]), NBODY_OK);
        CHECK_RESULT(nbody_fields(&fresh, &d, s.pos, 0, s.mass, s.n, acc, potential[1]), NBODY_OK);
        CHECK(same(potential[0], potential[1], sizeof potential[0]));
        nbody_free(&fresh);
    }
    nbody_free(&sim);
    oracle_forget(&s);
}

/* A tree of one cell has no sources: the arrays of an earlier one are not taken for its. */
static void test_no_sources(void **state)
{
    int kind;
    (void)state;
    for (kind = KIND_VP; kind <= KIND_FN4C; kind++) {
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        oracle_scene s = scene_of(100);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK(sim.vm != NULL && sim.vx != NULL && sim.vy != NULL && sim.made != NULL);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, 2), NBODY_OK);
        CHECK(sim.frame->cells == 1 && sim.block[NBODY_I_SOURCES].bytes > 0);
        CHECK(!sim.vm && !sim.vx && !sim.vy && !sim.vxx && !sim.vxy && !sim.vyy && !sim.made);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* The same bodies again take no memory. */
static void test_again_takes_no_memory(void **state)
{
    int kind, round;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0};
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s = scene_of(200);
        nbody_desc d = desc_of(kind);
        int64_t calls = 0;
        real acc[400], potential[200];
        d.allocator = allocator_of(&h);
        for (round = 0; round < 3; round++) {
            CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, acc, potential), NBODY_OK);
            CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n / 2, acc), NBODY_OK);
            CHECK(round == 0 || h.calls == calls);
            calls = h.calls;
        }
        nbody_free(&sim);
        CHECK(h.live_blocks == 0 && !h.wrong);
        oracle_forget(&s);
    }
}

/* After a reserve, evenly spread bodies take none: a lattice, and random ones. */
static void test_reserve(void **state)
{
    int kind, levels, random, size;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (levels = 0; levels < 3; levels++)
            for (random = 0; random < 2; random++)
        for (size = 0; size < 2; size++) {
        nbody sim = {0};
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s;
        nbody_desc d = desc_of(kind);
        int64_t calls, bytes;
        real *acc, *potential;
        if ((SANITIZED || small_run()) && size && kind > KIND_VP_MOMENTS) continue;
        oracle_make(&s, random ? ORACLE_UNIFORM : ORACLE_LATTICE,
            size ? SANITIZED || small_run() ? 400 : 1024 : 100, 0, &dice);
        acc = NEW(real, 2 * s.n);
        potential = NEW(real, s.n);
        d.allocator = allocator_of(&h);
        d.levels = levels == 0 ? 0 : levels == 1 ? 4 : 5;
        d.leaf = 0;
        CHECK_RESULT(nbody_reserve(&sim, &d, s.n), NBODY_OK);
        CHECK(sim.n == 0 && sim.frame == NULL && h.live_bytes == nbody_bytes(&sim) && h.calls > 0);
        CHECK_RESULT(nbody_validate(&sim), NBODY_NOT_BUILT);
        calls = h.calls;
        bytes = h.live_bytes;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, NULL, s.n, acc), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, NULL, s.n, acc, potential), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, NULL, s.n / 2, acc, potential), NBODY_OK);
        CHECK(h.calls == calls && h.live_bytes == bytes && nbody_bytes(&sim) == bytes);
        nbody_free(&sim);
        CHECK(h.live_blocks == 0 && !h.wrong);
        free(acc);
        free(potential);
        oracle_forget(&s);
    }
}

/* n rises by one with every build: what is allocated follows its logarithm. A reserve takes what it
   needs. */
static void test_growth(void **state)
{
    SLOW_TEST();
    /* the power of 3 / 2 that is above 600, and some for the first few bodies */
    enum { MOST = 600, GROWTHS = 18 };
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0}, first = {0};
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s = scene_of(MOST);
        nbody_desc d = desc_of(kind);
        real *acc = NEW(real, 2 * MOST), *potential = NEW(real, MOST);
        int64_t bytes;
        int32_t n;
        d.allocator = allocator_of(&h);
        for (n = 1; n <= MOST; n++) {
            if (n <= 40 || n == MOST) /* nodes and tables take longest */
                CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, n, acc, potential), NBODY_OK);
            else CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, n), NBODY_OK);
            if (n == 1) CHECK(sim.block[NBODY_I_BODIES].bytes == NBODY_I_BODY);
        }
        CHECK(h.calls <= NBODY_BLOCKS * GROWTHS);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        bytes = nbody_bytes(&sim);
        CHECK_RESULT(nbody_fields(&first, &d, s.pos, 0, s.mass, MOST, acc, potential), NBODY_OK);
        CHECK(nbody_bytes(&first) <= bytes + bytes / 2 && bytes <= 2 * nbody_bytes(&first));
        nbody_free(&sim);
        nbody_free(&first);
        for (n = 100; n <= 103; n++) {
            CHECK_RESULT(nbody_reserve(&sim, &d, n), NBODY_OK);
            CHECK(sim.block[NBODY_I_BODIES].bytes == (size_t)n * NBODY_I_BODY);
        }
        bytes = nbody_bytes(&sim);
        CHECK_RESULT(nbody_reserve(&first, &d, 103), NBODY_OK);
        CHECK(bytes == nbody_bytes(&first));
        nbody_free(&sim);
        nbody_free(&first);
        CHECK(h.live_blocks == 0 && !h.wrong);
        free(acc);
        free(potential);
        oracle_forget(&s);
    }
}

/* Everything that allocates, with the k-th allocation failing, and with `scarce` the next one, too.
   Returns the number of failures; *calls: allocations until then. */
static int memory_scenario(heap *h, const oracle_scene *s, int kind, int scarce, int64_t *calls)
{
    nbody sim = {0};
    nbody_desc d = desc_of(kind);
    real *acc = NEW(real, 2 * s->n), *potential = NEW(real, s->n), *pos = NEW(real, 2 * s->n),
        *vel = NEW(real, 2 * s->n);
    nbody_bodies b;
    int failures = 0, step;
    memset(&b, 0, sizeof b);
    memset(vel, 0, 2 * (size_t)s->n * sizeof *vel);
    memcpy(pos, s->pos, 2 * (size_t)s->n * sizeof *pos);
    b.pos = pos;
    b.vel = vel;
    b.acc = acc;
    b.mass = s->mass;
    b.n = s->n;
    d.allocator = allocator_of(h);
    if (scarce) d.allocator.alloc = scarce_alloc;
    for (step = 0; step < 6; step++) {
        nbody_result r = NBODY_OK;
        acc[0] = potential[0] = 42;
        switch (step) {
        case 0: r = nbody_build(&sim, &d, s->pos, 0, s->mass, s->n / 4); break;
        case 1: r = nbody_accelerations(&sim, &d, s->pos, 0, s->mass, s->n / 2, acc); break;
        case 2: r = nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n / 2, acc, potential); break;
        case 3: r = nbody_validate(&sim); break;
        case 4: r = nbody_reserve(&sim, &d, s->n); break;
        default: r = nbody_step(&sim, &d, &b, (real)1e-6, NBODY_LEAPFROG);
        }
        CHECK(r == NBODY_OK || r == NBODY_OUT_OF_MEMORY || (step == 3 && r == NBODY_NOT_BUILT));
        if (r == NBODY_OUT_OF_MEMORY) {
            failures++;
            if (step < 3) CHECK(acc[0] == 42 && potential[0] == 42);
            if (step != 3) CHECK(sim.n == 0 && sim.frame == NULL);
            if (step == 5) CHECK(b.fresh == 0);
        }
        CHECK(h->live_bytes == nbody_bytes(&sim) && !h->wrong);
    }
    *calls = h->calls;
    h->fail_at = 0; /* and whatever failed, it works now */
    CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    nbody_free(&sim);
    free(acc);
    free(potential);
    free(pos);
    free(vel);
    return failures;
}

static void test_out_of_memory(void **state)
{
    SLOW_TEST();
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s = scene_of(80);
        int64_t total, calls, k;
        int64_t told = 0;
        if (kind % 2) oracle_squeeze(&s, 1e-9); /* a deep tree */
        CHECK(memory_scenario(&h, &s, kind, 0, &total) == 0 && total >= 4);
        for (k = 1; k <= total; k++) {
            int failures;
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            /* none where a smaller size did as well */
            failures = memory_scenario(&h, &s, kind, 0, &calls);
            CHECK(failures <= 1 && calls >= k && h.live_bytes == 0 && h.live_blocks == 0 &&
                !h.wrong);
            told += failures;
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            /* two where the next step needs memory as well */
            failures = memory_scenario(&h, &s, kind, 1, &calls);
            CHECK((failures == 1 || failures == 2) && calls >= k && h.live_bytes == 0 &&
                h.live_blocks == 0 && !h.wrong);
        }
        CHECK(told >= 4);
        oracle_forget(&s);
    }
}

/* Memory goes back to where it came from: another allocator is refused as long as there is some. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    nbody sim = {0};
    nbody_desc d = desc_of(KIND_C4), second = d, none = d;
    real acc[16], potential[16];
    (void)state;
    d.allocator = allocator_of(&h);
    second.allocator = allocator_of(&other);
    (void)fill(potential);
    CHECK_RESULT(nbody_accelerations(&sim, &d, four, 0, NULL, 4, acc), NBODY_OK);
    CHECK_RESULT(nbody_fields(&sim, &none, four, 0, NULL, 4, fill(acc), potential),
        NBODY_BAD_ALLOCATOR);
    check_empty(&sim, &d, acc, potential);
    CHECK_RESULT(nbody_build(&sim, &second, four, 0, NULL, 4), NBODY_BAD_ALLOCATOR);
    check_empty(&sim, &d, acc, potential);
    CHECK_RESULT(nbody_reserve(&sim, &second, 4), NBODY_BAD_ALLOCATOR);
    check_empty(&sim, &d, acc, potential);
    CHECK(h.live_bytes == nbody_bytes(&sim) && h.live_bytes > 0 && other.calls == 0);
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && !h.wrong);
    CHECK_RESULT(nbody_build(&sim, &second, four, 0, NULL, 4), NBODY_OK);
    nbody_free(&sim);
    CHECK(other.live_blocks == 0 && other.calls > 0 && !other.wrong);
}

/* Memory that is not aligned is refused, however often it is tried, and given back. */
static void test_crooked_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nbody sim = {0};
    nbody_desc d = desc_of(KIND_C4);
    real acc[16];
    int round;
    (void)state;
    d.allocator.alloc = crooked_alloc;
    d.allocator.free = crooked_free;
    d.allocator.user = &h;
    for (round = 0; round < 20; round++) {
        CHECK_RESULT(nbody_accelerations(&sim, &d, four, 0, NULL, 4, fill(acc)),
            NBODY_BAD_ALLOCATOR);
        CHECK(sim.n == 0 && sim.frame == NULL && h.calls > round && !h.wrong &&
            same(acc, untouched, sizeof acc));
    }
    CHECK(h.live_blocks == 0);
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && !h.wrong);
}
