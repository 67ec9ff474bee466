/* choices.c - a part of test_nbody.c: calls before the first build, result texts, defaults, the
   automatic method and number of levels.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Every call that reads a tree gives this result where there is none, or one of no bodies. */
static void check_holds_nothing(const nbody *sim, nbody_result want)
{
    nbody_counts counts;
    nbody_error error;
    real acc[2] = {5, 5}, potential = 5;
    CHECK(sim->n == 0);
    CHECK_RESULT(nbody_validate(sim), want);
    CHECK_RESULT(nbody_verify(sim, acc, 1, 0, 1), want);
    CHECK_RESULT(nbody_estimate(sim, acc, 1, 0, &error), want);
    CHECK_RESULT(nbody_count(sim, &counts), want);
    CHECK_RESULT(nbody_fields_at(sim, four, 0, 1, acc, &potential, NULL), want);
    CHECK(acc[0] == (want == NBODY_OK ? 0 : 5) && potential == acc[0]);
}

/* One rule: without a tree every call returns a code; a tree over no bodies is one. */
static void test_not_built(void **state)
{
    real const bad[2] = {0, REAL_NAN};
    nbody sim = {0};
    (void)state;
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_build(&sim, NULL, NULL, 0, NULL, 0), NBODY_OK);
    check_holds_nothing(&sim, NBODY_OK);
    CHECK_RESULT(nbody_reserve(&sim, NULL, 4), NBODY_OK);
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_build(&sim, NULL, four, 0, NULL, 4), NBODY_OK);
    CHECK_RESULT(nbody_build(&sim, NULL, bad, 0, NULL, 1), NBODY_NOT_FINITE);
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
    /* its own desc is allowed */
    CHECK_RESULT(nbody_build(&sim, &sim.desc, four, 0, NULL, 4), NBODY_OK);
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    nbody_free(&sim);
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
}

/* A point that is none is refused by a tree of nothing as by a full one. */
static void test_points_without_numbers(void **state)
{
    real const bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int kind, full, b, a;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (full = 0; full < 2; full++) for (b = 0; b < 3; b++)
            for (a = 0; a < 2; a++) {
        nbody_desc const d = desc_of(kind);
        nbody sim = {0};
        real points[4] = {0, 0, 0, 0}, acc[4] = {5, 5, 5, 5};
        int32_t bad_id = 7;
        points[2 + a] = bad[b];
        CHECK_RESULT(nbody_build(&sim, &d, four, 0, masses, full ? 4 : 0), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, 2, acc, NULL, &bad_id), NBODY_NOT_FINITE);
        CHECK(bad_id == 1 && acc[0] == 5);
        nbody_free(&sim);
    }
}

static void count_runs(nbody_task *task, void *context, int32_t tasks, void *user)
{
    int32_t k;
    ++*(int *)user;
    for (k = 0; k < tasks; k++) task(context, k);
}

/* A thousand bodies are not worth a task, but for methods that compute for milliseconds even then;
   ten thousand are. */
static void test_few_are_not_cut(void **state)
{
    int kind, many;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (many = 0; many < 2; many++) {
        oracle_scene s;
        nbody_desc d = desc_of(kind);
        outcome o;
        int runs = 0;
        if (kind == KIND_FN8 || kind == KIND_FN4C) continue;
        if (many && (small_run() || SANITIZED)) continue;
        oracle_make(&s, ORACLE_UNIFORM, many ? 10000 : d.method == NBODY_DIRECT ? 700 : 1000, 0,
            &dice);
        d.leaf = d.levels = 0;
        d.parallel.run = count_runs;
        d.parallel.user = &runs;
        d.parallel.tasks = 16;
        evaluate(&o, &d, &s);
        CHECK(many ? runs > 0 : runs == 0);
        drop(&o);
        oracle_forget(&s);
    }
}

/* Every result has a text of its own that begins with its name, and names what to change. */
static void test_texts(void **state)
{
    static const struct { nbody_result r; const char *word; } texts[] = {
        {NBODY_OK, "well"}, {NBODY_BAD_ARGUMENT, "stride"}, {NBODY_BAD_OPTION, "desc.order"},
        {NBODY_BAD_LEVELS, "desc.levels"}, {NBODY_BAD_NUMBER, "desc.softening"},
        {NBODY_BAD_SQUARE, "desc.size"}, {NBODY_BAD_ALLOCATOR, "desc.allocator"},
        {NBODY_NOT_FINITE, "sim.bad_id"}, {NBODY_BAD_MASS, "sim.bad_id"},
        {NBODY_TOO_LARGE, "scale"}, {NBODY_TOO_MANY, "2^30"},
        {NBODY_OUT_OF_MEMORY, "desc.allocator"}, {NBODY_NOT_BUILT, "nbody_build"},
        {NBODY_CELLS_FULL, "desc.max_cells"}, {NBODY_INVALID, "damaged"},
        {NBODY_CUDA_ERROR, "cuda_error"}, {NBODY_NOT_RUN, "desc.parallel.run"},
        {NBODY_BUFFER_TOO_SMALL, "size"}, {NBODY_BAD_FILE, "saved"},
        {NBODY_NO_PART, "NBODY_WITH_PERIODIC"},
    };
#define NAME_OF(code, text) #code ": ",
    static const char *const names[] = {NBODY_RESULTS(NAME_OF)};
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == NBODY_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = nbody_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].word) != NULL);
        CHECK(strncmp(text, names[k], strlen(names[k])) == 0);
        for (other = 0; other < k; other++)
            CHECK(strcmp(text, nbody_result_text((nbody_result)other)) != 0);
    }
    CHECK(strstr(nbody_result_text(NBODY_BAD_ARGUMENT), "bytes") != NULL &&
        "a stride may have been a count of numbers");
    CHECK(strstr(nbody_result_text(NBODY_TOO_LARGE), "largest") != NULL &&
        strstr(nbody_result_text(NBODY_NOT_FINITE), "point") != NULL);
    CHECK(*nbody_result_text((nbody_result)-1) && *nbody_result_text(NBODY_RESULT_COUNT) &&
        *nbody_result_text((nbody_result)1000));
    CHECK(nbody_version() == 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR +
        NBODY_VERSION_PATCH && nbody_version() > 0);
}

static void test_defaults(void **state)
{
    nbody_desc d = empty_desc(), out;
    int order;
    (void)state;
    CHECK_RESULT(nbody_defaults(&out, NULL, 4), NBODY_OK);
    CHECK(out.method == NBODY_DIRECT && out.law == NBODY_INVERSE_SQUARE && out.gravity == 1 &&
        out.softening == 0 && out.size == 0);
    CHECK(out.mass_stride == sizeof(real) && out.acc_stride == 2 * sizeof(real) &&
        out.stage == NBODY_FAST);
    CHECK(out.allocator.alloc == NULL && out.allocator.free == NULL);
    CHECK_RESULT(nbody_defaults(&out, &d, 1000000), NBODY_OK);
    CHECK(out.method == NBODY_FORCE_NODES && out.order == 4 && out.sources == NBODY_CHEBYSHEV &&
        out.leaf > 0);
    CHECK(out.levels > 1 && out.levels <= NBODY_MAX_LEVELS);
    for (order = 1; order <= NBODY_MAX_ORDER; order++) {
        d.method = NBODY_FORCE_NODES;
        d.order = order;
        CHECK_RESULT(nbody_defaults(&out, &d, 100), NBODY_OK);
        CHECK(out.order == order && out.method == NBODY_FORCE_NODES && out.subcells == 8);
        CHECK(out.sources == (order == 1 ? NBODY_MASS_CENTRES : NBODY_CHEBYSHEV));
    }
    /* the leaves that were measured best: the bench's group `leaf` */
    for (order = 1; order <= NBODY_MAX_ORDER; order++) {
        d.order = order;
        CHECK_RESULT(nbody_defaults(&out, &d, 60), NBODY_OK);
        CHECK(out.leaf == (order == 1 ? 128 : order <= 4 ? 80 : order <= 6 ? 144 : 200));
        d.sources = NBODY_MASS_CENTRES;
        CHECK_RESULT(nbody_defaults(&out, &d, 60), NBODY_OK);
        CHECK(out.leaf == (order == 1 ? 128 : 64));
        d.sources = NBODY_SOURCES_AUTO;
    }
    d = empty_desc();
    d.method = NBODY_VIRTUAL_PARTICLES;
    CHECK_RESULT(nbody_defaults(&out, &d, 10), NBODY_OK);
    CHECK(out.leaf == 80);
    CHECK(out.order == 1 && out.sources == NBODY_MASS_CENTRES && out.subcells == 8);
    d.levels = 5;
    d.order = 2;
    d.subcells = 4;
    d.gravity = -2;
    d.softening = 3;
    CHECK_RESULT(nbody_defaults(&out, &d, 10), NBODY_OK);
    CHECK(out.levels == 5 && out.leaf == 0 && out.order == 2 && out.subcells == 4 &&
        out.gravity == -2 && out.softening == 3);
    d.leaf = 9;
    CHECK_RESULT(nbody_defaults(&out, &d, 10), NBODY_OK);
    CHECK(out.levels == 5 && out.leaf == 9);
    CHECK_RESULT(nbody_defaults(&d, &d, 10), NBODY_OK); /* in place, and again: it stays */
    CHECK(same(&d, &out, sizeof d));
}

/* The default leaf is not near the number of bodies that cells have where these are spread evenly:
   all leaves are on one level. 20 cells of 64 have 80 bodies and more of 5000, 10 of 16 of 1300. */
static void test_even_leaves(void **state)
{
    static const int32_t sizes[] = {1300, 5000};
    nbody_desc d = empty_desc();
    nbody sim = {0};
    int k, last;
    (void)state;
    d.method = NBODY_FORCE_NODES;
    for (k = 0; k < COUNT_OF(sizes); k++) {
        int32_t const n = sizes[k];
        real *pos = NEW(real, 2 * n);
        int32_t i;
        for (i = 0; i < 2 * n; i++) pos[i] = (real)oracle_between(&dice, 0, 1);
        CHECK_RESULT(nbody_build(&sim, &d, pos, 0, NULL, n), NBODY_OK);
        last = sim.frame->levels - 1;
        CHECK(sim.frame->cells == ((1 << 2 * (last + 1)) - 1) / 3);
        free(pos);
    }
    nbody_free(&sim);
}

/* Few bodies: the direct sum; many: not. sim.desc says which. */
static void test_automatic_method(void **state)
{
    oracle_scene s = scene_of(3000);
    nbody sim = {0};
    nbody_desc d = empty_desc();
    (void)state;
    CHECK_RESULT(nbody_build(&sim, NULL, s.pos, 0, NULL, 10), NBODY_OK);
    CHECK(sim.desc.method == NBODY_DIRECT && sim.cell == NULL);
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
    CHECK(sim.desc.method == NBODY_FORCE_NODES && sim.cell != NULL && sim.desc.order == 4);
    d.order = 6; /* is that of the tree, should there be one */
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
    CHECK(sim.desc.order == 6 && sim.nodes == 36);
    nbody_free(&sim);
    oracle_forget(&s);
}

/* Deeper for more bodies, by a level at most, and as deep as was counted to be best (give or take
   one). */
static void test_levels_for(void **state)
{
    static const struct { int kind, order; int32_t n; int levels; } best[] = {
        {KIND_VP, 1, 10000, 6}, {KIND_VP, 1, 100000, 7}, {KIND_VP, 1, 1000000, 9},
        {KIND_FN8, 1, 10000, 5}, {KIND_FN8, 1, 100000, 6}, {KIND_FN8, 1, 1000000, 8},
        {KIND_FN4C, 4, 10000, 5}, {KIND_FN4C, 4, 100000, 7}, {KIND_FN4C, 4, 1000000, 8},
        {KIND_C4, 4, 100000, 7}, {KIND_C4, 8, 10000, 4}, {KIND_C4, 8, 100000, 6},
        {KIND_C4, 8, 1000000, 7},
    };
    int k, kind;
    (void)state;
    CHECK(nbody_levels_for(NULL, 0) == 1 && nbody_levels_for(NULL, 1) == 1 &&
        nbody_levels_for(NULL, 100000) >= 6);
    for (k = 0; k < COUNT_OF(best); k++) {
        nbody_desc d = desc_of(best[k].kind);
        d.order = best[k].order;
        CHECK(abs((int)nbody_levels_for(&d, best[k].n) - best[k].levels) <= 1);
    }
    for (kind = 0; kind <= KINDS; kind++) {
        nbody_desc d = kind < KINDS ? desc_of(kind) : empty_desc();
        int32_t n, before = 1;
        for (n = 0; n < 0x40000000 - 1024; n += 1 + n / 50) {
            int32_t const levels = nbody_levels_for(&d, n);
            CHECK(levels >= before && levels <= before + 1 && levels <= NBODY_MAX_LEVELS);
            before = levels;
        }
        CHECK(before >= 12);
    }
}
