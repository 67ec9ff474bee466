/* wall_calls.c - a part of test_nlist.c: history, sums, pairs, refusals and failing allocations
   of lists of triangles.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Contacts that stay: through a remap, a file, and another build at the same places. */
static void test_walls_keep_history(void **state)
{
    int round;
    (void)state;
    for (round = 0; round < 20; round++) {
        surface s = {0};
        nlist list = {0}, loaded = {0};
        oracle_memory m;
        nlist_desc d = wall_desc(0.25);
        int32_t const n = 30;
        real *pos = NEW(real, 3 * n), *after = NEW(real, 3 * n);
        int32_t new_id[30], i;
        int64_t size, needed;
        void *bytes;
        memset(&m, 0, sizeof m);
        add_floor(&s, 6, 6, 0.25, 0.1, hilly);
        hand_over(&s, round % FORMS);
        d.history = 1 + round;
        d.events = 1;
        d.layout = round % 2 ? NLIST_DYNAMIC : NLIST_COMPACT;
        for (i = 0; i < 3 * n; i++)
            pos[i] = i % 3 < 2 ? between(0, (real)1.5) : between((real)-0.3, (real)0.3);
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, n), NLIST_OK);
        CHECK_FINE(oracle_check_events(&m, &list));
        CHECK_FINE(oracle_remember(&m, &list));
        oracle_stamp(&m, &list, 1, &dice);
        for (i = 0; i < n; i++) new_id[i] = i < 5 ? -1 : (7 * i + 3) % n;
        CHECK_RESULT(nlist_remap(&list, new_id, n), NLIST_OK);
        oracle_rename(&m, new_id, n, 1);
        CHECK_FINE(oracle_recall(&m, &list));
        CHECK_RESULT(nlist_save(&list, NULL, 0, &size), NLIST_BUFFER_TOO_SMALL);
        bytes = exactly((size_t)size);
        CHECK_RESULT(nlist_save(&list, bytes, size, &needed), NLIST_OK);
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        CHECK(loaded.keys && loaded.desc.layout == NLIST_DYNAMIC &&
            loaded.triangles == s.mesh.triangles);
        CHECK_RESULT(nlist_validate(&loaded), NLIST_OK);
        CHECK_FINE(oracle_recall(&m, &loaded));
        for (i = 0; i < 3 * n; i++) after[i] = 9; /* those that are new are far away */
        for (i = 5; i < n; i++) memcpy(after + 3 * new_id[i], pos + 3 * i, 3 * sizeof(real));
        CHECK_RESULT(nlist_build_mesh(&loaded, &d, &s.tree, &s.mesh, after, 0, n), NLIST_OK);
        CHECK_FINE(oracle_check_events(&m, &loaded));
        CHECK_FINE(oracle_remember(&m, &loaded));
        CHECK(m.begun == 0 && m.ended == 0);
        for (i = 0; i < 3 * n; i++) after[i] = 9;
        CHECK_RESULT(nlist_build_mesh(&loaded, &d, &s.tree, &s.mesh, after, 0, n), NLIST_OK);
        CHECK_FINE(oracle_check_events(&m, &loaded));
        CHECK(loaded.total == 0 && loaded.event_count[NLIST_ENDED] > 0);
        free(bytes);
        free(pos);
        free(after);
        oracle_memory_free(&m);
        nlist_free(&list);
        nlist_free(&loaded);
        drop_surface(&s);
    }
}

static int count_calls(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)history;
    ++*(int *)user;
    own[0] = 1;
    own[1] = (real)nlist_key_triangle(j);
    other[0] = REAL_NAN;
    return 1;
}

/* Sums over walls: each particle's own only. Pairs: the particle and the key, and no shift. */
static void test_wall_sums_and_pairs(void **state)
{
    int mode, unit;
    (void)state;
    for (mode = NLIST_AUTO; mode <= NLIST_REDUCE; mode++) for (unit = 0; unit < 2; unit++) {
        surface s = {0};
        nlist list = {0};
        nlist_desc d = wall_desc(0.25);
        nlist_sums how;
        int32_t const n = 20;
        real pos[60], sums[40];
        int32_t *pair, i;
        int64_t needed = 0, k = 0;
        int called = 0;
        add_floor(&s, 4, 4, 0.25, 0.1, hilly);
        hand_over(&s, INDEXED);
        for (i = 0; i < 3 * n; i++)
            pos[i] = i % 3 < 2 ? between(0, 1) : between((real)-0.3, (real)0.3);
        d.half = 1; /* does not apply */
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, n), NLIST_OK);
        CHECK(!list.desc.half && list.total > 5);
        how.values = 2;
        how.mode = (nlist_mode)mode;
        how.unit = unit ? 0.5 : 0;
        for (i = 0; i < 2 * n; i++) sums[i] = 0;
        CHECK_RESULT(nlist_sum(&list, &how, count_calls, &called, sums), NLIST_OK);
        CHECK(called == list.total);
        pair = NEW(int32_t, 2 * list.total);
        CHECK_RESULT(nlist_pairs(&list, pair, list.total, &needed, NULL, 0, NULL), NLIST_OK);
        CHECK_RESULT(nlist_pairs(&list, pair, list.total, &needed, pos, 0, pair),
            NLIST_BAD_ARGUMENT);
        CHECK_RESULT(nlist_pairs(&list, pair, list.total, &needed, NULL, 0, NULL), NLIST_OK);
        for (i = 0; i < n; i++) {
            nlist_each e = nlist_of(&list, i);
            double numbers = 0;
            for (; nlist_next(&e); k++) {
                CHECK(pair[2 * k] == i && pair[2 * k + 1] == e.id);
                numbers += nlist_key_triangle(e.id);
            }
            CHECK((double)sums[2 * i] == row_length(&list, i) &&
                (double)sums[2 * i + 1] == numbers);
        }
        CHECK(k == needed && needed == list.total);
        free(pair);
        nlist_free(&list);
        drop_surface(&s);
    }
}

/* Refusals leave the list as it was. */
static void test_bad_meshes(void **state)
{
    surface s = {0};
    nlist list = {0};
    lbvh none = {0}, plane = {0};
    lbvh_desc t;
    nlist_desc d = wall_desc(1), bad;
    nlist_mesh mesh;
    oracle_snapshot before;
    static const real p[6] = {(real)0.5, (real)0.5, (real)0.25, 1, 1, (real)0.5};
    real spoilt[6];
    (void)state;
    add_floor(&s, 2, 2, 1, 0, flat);
    hand_over(&s, INDEXED);
    d.history = 4;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_OK);
    oracle_write(nlist_of(&list, 0).all_history, 4, 5);
    oracle_take(&before, &list);
    CHECK_RESULT(nlist_build_mesh(NULL, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, NULL, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, NULL, &s.mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, NULL, p, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, NULL, 0, 2), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, -1), NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 2 * sizeof(real), 2),
        NLIST_BAD_ARGUMENT);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &none, &s.mesh, p, 0, 2), NLIST_BAD_SOURCE);
    mesh = s.mesh;
    mesh.vertices = NULL;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    mesh = s.mesh;
    mesh.stride = 2 * sizeof(real);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    mesh = s.mesh;
    mesh.triangles--;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_SOURCE);
    mesh.triangles = -1;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_BAD_ARGUMENT);
    mesh.triangles = (1 << 28) + 1;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &mesh, p, 0, 2), NLIST_TOO_MANY);
    bad = d;
    bad.layout = NLIST_STATIC;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_OPTION);
    bad.layout = NLIST_HYBRID;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_OPTION);
    bad = d;
    bad.skin = (real)-0.125;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_SKIN);
    bad = d;
    bad.radius = 0;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_BAD_RADIUS);
    bad = d;
    bad.capacity = 1;
    CHECK_RESULT(nlist_build_mesh(&list, &bad, &s.tree, &s.mesh, p, 0, 2), NLIST_LIST_FULL);
    CHECK(list.needed_entries == 2);
    memcpy(spoilt, p, sizeof p);
    spoilt[4] = REAL_NAN;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, spoilt, 0, 2), NLIST_NOT_FINITE);
    CHECK(list.bad_id == 1);
    CHECK_RESULT(nlist_build_brute(&list, &d, p, 0, 2), NLIST_BAD_HISTORY);
    memset(&t, 0, sizeof t);
    t.kind = LBVH_TRIANGLES;
    t.dim = 2;
    t.indices = s.mesh.indices;
    t.vertices = s.mesh.vertex_count;
    CHECK(lbvh_build(&plane, &t, s.mesh.vertices, 3 * sizeof(real), s.mesh.triangles) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &plane, &s.mesh, p, 0, 2), NLIST_BAD_DIM);
    CHECK_FINE(oracle_check_unchanged(&before, &list));
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_OK);
    memset(&mesh, 0, sizeof mesh); /* no triangles, no particles */
    CHECK_RESULT(nlist_build_mesh(&list, &d, &none, &mesh, p, 0, 2), NLIST_OK);
    CHECK(list.n == 2 && list.total == 0);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, NULL, 0, 0), NLIST_OK);
    CHECK(list.n == 0);
    oracle_drop_snapshot(&before);
    lbvh_free(&plane);
    nlist_free(&list);
    drop_surface(&s);
}

/* Memory that runs out at each allocation. */
static void test_walls_out_of_memory(void **state)
{
    surface s = {0};
    real pos[90];
    int64_t k, total = 1, all_failures = 0;
    int32_t i;
    (void)state;
    add_floor(&s, 4, 4, 0.25, 0.1, hilly);
    hand_over(&s, LOOSE);
    for (i = 0; i < 90; i++) pos[i] = i % 3 < 2 ? between(0, 1) : between((real)-0.2, (real)0.2);
    for (k = 0; k <= total; k++) {
        heap h = {0, 0, 0, 0, 0, 0};
        nlist list = {0};
        nlist_desc d = wall_desc(0.25);
        oracle_snapshot before;
        nlist_result r;
        int failures = 0, step;
        h.fail_at = k;
        d.history = 4;
        d.events = 1;
        d.allocator = allocator_of(&h);
        for (step = 1; step <= 3; step++) {
            oracle_take(&before, &list);
            r = nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, 10 * step);
            if (r == NLIST_OUT_OF_MEMORY) {
                failures++;
                CHECK_FINE(oracle_check_unchanged(&before, &list));
                r = nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, 10 * step);
            }
            CHECK_RESULT(r, NLIST_OK);
            oracle_drop_snapshot(&before);
        }
        /* none where less memory did */
        CHECK(failures <= (k > 0) && h.live_bytes == nlist_bytes(&list));
        all_failures += failures;
        if (k == 0) total = h.calls;
        nlist_free(&list);
        CHECK(h.live_blocks == 0 && !h.wrong);
    }
    CHECK(total > 10 && all_failures > total / 3);
    drop_surface(&s);
}
