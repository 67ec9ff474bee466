/* files.c - a part of test_nlist.c: a list that was saved and loaded goes on as the first;
   damaged and forged files are refused.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Every layout into every other, half and full, with and without history, skin, names: the same
   rows, order and bytes. */
static void test_files(void **state)
{
    int counter;
    (void)state;
    for (counter = 0; counter < 256; counter++) {
        nlist list = {0}, loaded = {0};
        oracle_scene s;
        oracle_memory m;
        nlist_desc d;
        void *bytes;
        int64_t size;
        int32_t *new_id, i, moved = -1;
        if (!chosen(counter)) continue;
        memset(&m, 0, sizeof m);
        oracle_make(&s, counter % ORACLE_EMPTY, 2 + roll(2), roll(8), 1 + roll(40),
            roll(2) ? ORACLE_SKIN : ORACLE_RADII, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.width = 3;
        d.grow = 1;
        d.half = counter >> 2 & 1;
        d.history = counter & 8 ? 13 : 0;
        d.events = 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        CHECK_FINE(oracle_remember(&m, &list));
        if (d.history) oracle_stamp(&m, &list, 1, &dice);
        new_id = NEW(int32_t, s.n);
        for (i = 0; i < s.n; i++) new_id[i] = s.n - 1 - i;
        if (counter & 16) {
            CHECK_RESULT(nlist_remap(&list, new_id, s.n), NLIST_OK);
            oracle_rename(&m, new_id, s.n, 0);
        }
        bytes = saved(&list, &size);
        (void)full_list(&loaded, NLIST_STATIC, NULL); /* what is there must go */
        d.layout = (nlist_layout)(counter / 4 % 4);
        d.history = counter & 32 ? d.history : 0; /* 0: as it is in the file */
        d.dim = counter & 64 ? d.dim : 0;
        d.half = roll(2);
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        CHECK_FINE(oracle_same_order(&list, &loaded));
        CHECK_FINE(oracle_recall(&m, &loaded));
        CHECK_RESULT(nlist_validate(&loaded), NLIST_OK);
        CHECK(loaded.desc.half == list.desc.half && loaded.desc.dim == s.dim &&
            loaded.desc.history == list.desc.history);
        CHECK(loaded.desc.layout == d.layout && loaded.event_count[NLIST_BEGUN] == 0);
        if (s.skin > 0 && !(counter & 16)) {
            CHECK_RESULT(nlist_moved(&loaded, s.pos, s.stride, &moved), NLIST_OK);
            CHECK(!moved);
            s.pos[0] += s.skin;
            CHECK_RESULT(nlist_moved(&loaded, s.pos, s.stride, &moved), NLIST_OK);
            CHECK(moved);
            s.pos[0] -= s.skin;
        }
        d.dim = s.dim;
        d.half = list.desc.half;
        d.history = list.desc.history;
        if (!(counter & 16)) { /* the next build goes on from there */
            CHECK_RESULT(nlist_build_brute(&loaded, &d, s.pos, s.stride, s.n), NLIST_OK);
            CHECK(loaded.event_count[NLIST_BEGUN] <= loaded.total / 8 &&
                loaded.event_count[NLIST_ENDED] <= loaded.total / 8);
            CHECK_FINE(oracle_remember(&m, &loaded));
        }
        free(bytes);
        free(new_id);
        oracle_memory_free(&m);
        oracle_forget(&s);
        nlist_free(&list);
        nlist_free(&loaded);
    }
}

/* What a file does not fit. */
static void test_files_refused(void **state)
{
    nlist list = {0}, into = {0};
    oracle_snapshot before;
    nlist_desc d = full_list(&list, NLIST_COMPACT, NULL), other;
    int64_t size;
    void *bytes;
    (void)state;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    bytes = saved(&list, &size);
    (void)full_list(&into, NLIST_DYNAMIC, NULL);
    oracle_take(&before, &into);
    other = d;
    other.history = 8;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_BAD_HISTORY);
    other = d;
    other.dim = 2;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_BAD_DIM);
    other = d;
    other.layout = NLIST_STATIC;
    other.width = 1;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_ROW_FULL);
    CHECK(into.needed_width == 2);
    other.layout = NLIST_DYNAMIC;
    other.capacity = 1;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_LIST_FULL);
    CHECK(into.needed_entries == 4);
    other.capacity = -1;
    CHECK_RESULT(nlist_load(&into, &other, bytes, size), NLIST_BAD_CAPACITY);
    check_still_there(&into, &before);
    CHECK_RESULT(nlist_load(&into, &d, bytes, size), NLIST_OK);
    CHECK(into.total == 4 && into.desc.layout == NLIST_COMPACT);
    oracle_drop_snapshot(&before);
    free(bytes);
    nlist_free(&list);
    nlist_free(&into);
}

/* A small list with all that a file can have: history, names, positions, a box. */
static void *small_file(int64_t *size)
{
    static const int32_t turned[4] = {3, 1, 0, 2};
    nlist list = {0};
    nlist_desc d = plain_desc();
    void *bytes;
    d.half = 1;
    d.history = 3;
    d.skin = (real)0.25;
    d.periodic[2] = 1;
    d.max[2] = 8;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    write_history(&list);
    CHECK_RESULT(nlist_remap(&list, turned, 4), NLIST_OK);
    bytes = saved(&list, size);
    nlist_free(&list);
    return bytes;
}

/* Cut short anywhere, longer by one, and with any one bit turned. */
static void test_damaged_files(void **state)
{
    nlist into = {0};
    oracle_snapshot before;
    nlist_desc d = full_list(&into, NLIST_HYBRID, NULL), any = d;
    int64_t size, k;
    uint8_t *bytes = (uint8_t *)small_file(&size);
    int bit;
    (void)state;
    any.history = 0;
    any.skin = 0;
    any.layout = NLIST_DYNAMIC;
    oracle_take(&before, &into);
    for (k = 0; k < size; k++) {
        uint8_t *cut = (uint8_t *)exactly((size_t)k);
        memcpy(cut, bytes, (size_t)k);
        CHECK_RESULT(nlist_load(&into, &any, cut, k), NLIST_BAD_FILE);
        free(cut);
        for (bit = 0; bit < 8; bit++) {
            bytes[k] = (uint8_t)(bytes[k] ^ 1 << bit);
            CHECK_RESULT(nlist_load(&into, &any, bytes, size), NLIST_BAD_FILE);
            bytes[k] = (uint8_t)(bytes[k] ^ 1 << bit);
        }
        if (k % 16 == 0) check_still_there(&into, &before);
    }
    check_still_there(&into, &before);
    bytes = (uint8_t *)realloc(bytes, (size_t)size + 1);
    bytes[size] = 0;
    CHECK_RESULT(nlist_load(&into, &any, bytes, size + 1), NLIST_BAD_FILE);
    CHECK_RESULT(nlist_load(&into, &any, bytes, size), NLIST_OK);
    oracle_drop_snapshot(&before);
    free(bytes);
    nlist_free(&into);
}

/* Damage behind a right checksum (at byte sum_at; of the whole file with 0 there): refused, or a
   list that can be walked. */
static void test_forged_files(void **state)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 3, 4, 5, 7, 8, 255, 4096, 4097, 1 << 28, INT32_MAX,
        INT32_MIN, 0x7F800000};
    int64_t size, refused = 0, k, step, sum_at;
    uint8_t *bytes = (uint8_t *)small_file(&size), *whole = NEW(uint8_t, size);
    int const steps = 30000 / share();
    uint64_t sum;
    (void)state;
    sum_at = (int64_t)offsetof(nlist_i_header, sum);
    memcpy(whole, bytes, (size_t)size);
    for (step = 0; step < steps; step++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_result r;
        int32_t const value = odd[roll(COUNT_OF(odd))];
        int32_t i;
        memcpy(bytes, whole, (size_t)size);
        if (step) for (k = roll(3); k >= 0; k--) {
            if (roll(2)) memcpy(bytes + 4 * roll((int)size / 4), &value, 4);
            else bytes[roll((int)size)] = (uint8_t)roll(256);
        }
        memset(bytes + sum_at, 0, sizeof sum);
        sum = nlist_i_checksum(14695981039346656037u, bytes, (size_t)size);
        memcpy(bytes + sum_at, &sum, sizeof sum);
        /* the checksum is computed as the header does */
        CHECK(step || same(bytes, whole, (size_t)size));
        d.layout = (nlist_layout)roll(4);
        r = nlist_load(&list, &d, bytes, size);
        refused += r != NLIST_OK;
        CHECK(step || r == NLIST_OK);
        (void)nlist_validate(&list);
        for (i = 0; i < list.n; i++) {
            nlist_each e = nlist_of(&list, i);
            int64_t left = list.total;
            while (nlist_next(&e)) {
                CHECK(e.id >= 0 && (list.keys || e.id < list.n) && left-- > 0);
                if (e.history) ((uint8_t *)e.history)[list.desc.history - 1] = 1;
            }
        }
        nlist_free(&list);
    }
    CHECK(refused > steps / 8 && refused < steps);
    free(bytes);
    free(whole);
}

/* A list of keys has no half, no names, no positions, no periods and 3 dimensions: a file that says
   otherwise is refused, even if all else in it agrees with that. */
static void test_heads_of_keys(void **state)
{
    nlist list = {0}, loaded = {0};
    nlist_desc d = plain_desc();
    nlist_i_header whole;
    int64_t size, room, k;
    uint8_t *bytes, *forged;
    int what;
    (void)state;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    bytes = (uint8_t *)saved(&list, &size);
    memcpy(&whole, bytes, sizeof whole);
    room = size + 4 * (8 + 3 * (int64_t)sizeof(real));
    for (what = 0; what < 6; what++) {
        nlist_i_header head = whole;
        int64_t const named = what == 2 ? 4 * 8 : what == 3 ? 4 * 3 * (int64_t)sizeof(real) : 0;
        forged = NEW(uint8_t, room);
        memset(forged, 0, (size_t)room);
        memcpy(forged, bytes, (size_t)size);
        head.keys = 1;
        head.triangles = 1;
        head.next_uid = 4;
        head.sum = 0;
        if (what == 1) head.half = 1;
        if (what == 2) { /* names 0 .. 3, after the rows */
            head.has_uid = 1;
            for (k = 0; k < 4; k++) memcpy(forged + size + 8 * k, &k, 8);
        }
        if (what == 3) head.has_reference = 1;
        if (what == 4) { head.periodic = 1; head.max[0] = 8; }
        if (what == 5) head.dim = 2;
        memcpy(forged, &head, sizeof head);
        head.sum = nlist_i_checksum(14695981039346656037u, forged, (size_t)(size + named));
        memcpy(forged, &head, sizeof head);
        d.dim = what == 5 ? 2 : 3;
        d.half = what == 1;
        CHECK_RESULT(nlist_load(&loaded, &d, forged, size + named),
            what && what != 3 ? NLIST_BAD_FILE : NLIST_OK);  /* walls may have a skin */
        free(forged);
    }
    free(bytes);
    nlist_free(&list);
    nlist_free(&loaded);
}

/* A checksum that is right, whatever the file says. */
static void seal(uint8_t *bytes, int64_t size)
{
    nlist_i_header head;
    memcpy(&head, bytes, sizeof head);
    head.sum = 0;
    memcpy(bytes, &head, sizeof head);
    head.sum = nlist_i_checksum(14695981039346656037u, bytes, (size_t)size);
    memcpy(bytes, &head, sizeof head);
}

/* A list of two triangles, saved: a square, and a particle over each half of it. */
static uint8_t *file_of_keys(int64_t *size, lbvh *tree, nlist_mesh *mesh)
{
    static const real corners[18] = {0, 0, 0, 4, 0, 0, 0, 4, 0, 4, 4, 0, 0, 4, 0, 4, 0, 0},
        over[6] = {1, 1, 0, 3, 3, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    lbvh_desc t;
    uint8_t *bytes;
    memset(&t, 0, sizeof t);
    memset(mesh, 0, sizeof *mesh);
    t.kind = LBVH_TRIANGLES;
    mesh->vertices = corners;
    mesh->triangles = 2;
    d.history = 4;
    CHECK(lbvh_build(tree, &t, corners, 0, 2) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, tree, mesh, over, 0, 2), NLIST_OK);
    CHECK(list.total == 2 && list.triangles == 2 && nlist_find(&list, 1, nlist_key(1, 0)) >= 0);
    bytes = (uint8_t *)saved(&list, size);
    nlist_free(&list);
    return bytes;
}

/* A particle with three neighbours that are not near each other: a file's row of three in which two
   are the same is refused, whichever two, and in whatever order. */
static void test_doubles_in_a_file(void **state)
{
    static const real star[12] = {0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0};
    nlist list = {0};
    nlist_desc d = plain_desc();
    int64_t size;
    uint8_t *bytes;
    int32_t k;
    (void)state;
    d.radius = (real)1.25;
    d.half = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, star, 0, 4), NLIST_OK);
    CHECK(list.total == 3 && list.rows[0].count[0] == 3);
    bytes = (uint8_t *)saved(&list, &size);
    for (k = 0; k < 27; k++) {
        int32_t const row[3] = {1 + k % 3, 1 + k / 3 % 3, 1 + k / 9};
        int const doubles = row[0] == row[1] || row[1] == row[2] || row[0] == row[2];
        /* after the counts */
        memcpy(bytes + sizeof(nlist_i_header) + 4 * sizeof(int32_t), row, sizeof row);
        seal(bytes, size);
        CHECK_RESULT(nlist_load(&list, &d, bytes, size), doubles ? NLIST_BAD_FILE : NLIST_OK);
    }
    free(bytes);
    nlist_free(&list);
}

/* Keys of a file: features there are, of triangles below the count that is saved with them; and the
   layout of such a list. */
static void test_keys_of_a_file(void **state)
{
    static const struct { int32_t triangles, key; nlist_layout layout; nlist_result want;
        } files[] = {
        /* vertex C of triangle 1 */
        {2, 8, NLIST_COMPACT, NLIST_OK}, {2, 14, NLIST_DYNAMIC, NLIST_OK},
        /* feature 7 */
        {2, 15, NLIST_DYNAMIC, NLIST_BAD_FILE}, {2, 7, NLIST_COMPACT, NLIST_BAD_FILE},
        /* triangle 200,000,000 */
        {2, 16, NLIST_DYNAMIC, NLIST_BAD_FILE}, {2, 1600000000, NLIST_COMPACT, NLIST_BAD_FILE},
        {2, -8, NLIST_DYNAMIC, NLIST_BAD_FILE}, {1, 8, NLIST_DYNAMIC, NLIST_BAD_FILE},
        {0, 8, NLIST_DYNAMIC, NLIST_BAD_FILE},
        {-1, 8, NLIST_DYNAMIC, NLIST_BAD_FILE}, {1 << 28, INT32_MAX - 1, NLIST_DYNAMIC, NLIST_OK},
        {1 << 28, INT32_MAX, NLIST_DYNAMIC, NLIST_BAD_FILE},
        {(1 << 28) + 1, 8, NLIST_DYNAMIC, NLIST_BAD_FILE},
        {2, 8, NLIST_STATIC, NLIST_BAD_OPTION}, {2, 8, NLIST_HYBRID, NLIST_BAD_OPTION},
    };
    lbvh tree = {0};
    nlist_mesh mesh;
    int64_t size;
    uint8_t *bytes = file_of_keys(&size, &tree, &mesh);
    /* two counts and the first key before it */
    size_t const last = sizeof(nlist_i_header) + 3 * sizeof(int32_t);
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(files); k++) {
        nlist list = {0};
        nlist_desc d = plain_desc();
        nlist_i_header head;
        memcpy(&head, bytes, sizeof head);
        head.triangles = files[k].triangles;
        memcpy(bytes, &head, sizeof head);
        memcpy(bytes + last, &files[k].key, sizeof files[k].key);
        seal(bytes, size);
        d.layout = files[k].layout;
        CHECK_RESULT(nlist_load(&list, &d, bytes, size), files[k].want);
        if (files[k].want == NLIST_OK) {
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(list.keys && list.desc.layout == NLIST_DYNAMIC &&
                list.triangles == files[k].triangles);
            CHECK(nlist_find(&list, 1, files[k].key) >= 0);
        }
        if (files[k].want == NLIST_OK && list.triangles <= mesh.triangles) {
            static const real p[3] = {1, 2, 1};
            real q[3];
            CHECK(nlist_mesh_closest(&mesh, nlist_key_triangle(files[k].key), p, q) <= 6);
            list.triangles = 1; /* nlist_validate knows it, too */
            CHECK_RESULT(nlist_validate(&list), NLIST_INVALID);
        }
        nlist_free(&list);
    }
    free(bytes);
    lbvh_free(&tree);
}

/* Files of another version are refused, and what is not of triangles has none. */
static void test_versions_of_files(void **state)
{
    nlist into = {0};
    nlist_desc d = plain_desc();
    int64_t size;
    uint8_t *bytes = (uint8_t *)small_file(&size);
    nlist_i_header head;
    uint32_t version;
    (void)state;
    memcpy(&head, bytes, sizeof head);
    CHECK(head.version == 3 && head.triangles == 0 && head.rows == head.n && sizeof head == 136);
    for (version = 0; version < 5; version++) {
        head.version = version;
        memcpy(bytes, &head, sizeof head);
        seal(bytes, size);
        CHECK_RESULT(nlist_load(&into, &d, bytes, size), version == 3 ? NLIST_OK : NLIST_BAD_FILE);
    }
    head.version = 3;
    head.triangles = 1;
    memcpy(bytes, &head, sizeof head);
    seal(bytes, size);
    CHECK_RESULT(nlist_load(&into, &d, bytes, size), NLIST_BAD_FILE);
    head.triangles = 0;
    head.rows = head.n + 1;
    memcpy(bytes, &head, sizeof head);
    seal(bytes, size);
    CHECK_RESULT(nlist_load(&into, &d, bytes, size), NLIST_BAD_FILE);
    free(bytes);
    nlist_free(&into);
}

/* The box of a loaded list is the file's, on every axis, whatever desc says. */
static void test_box_of_a_file(void **state)
{
    int periodic;
    (void)state;
    for (periodic = 0; periodic < 8; periodic++) {
        nlist list = {0}, loaded = {0};
        nlist_desc d = plain_desc();
        int64_t size;
        void *bytes;
        int a;
        for (a = 0; a < 3; a++) {
            d.periodic[a] = periodic >> a & 1;
            d.min[a] = (real)(-1 - a);
            d.max[a] = (real)(8 + a);
        }
        CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
        bytes = saved(&list, &size);
        for (a = 0; a < 3; a++) {
            d.periodic[a] = !d.periodic[a];
            d.min[a] = -100;
            d.max[a] = 100;
        }
        CHECK_RESULT(nlist_load(&loaded, &d, bytes, size), NLIST_OK);
        for (a = 0; a < 3; a++) {
            CHECK(loaded.axis[a].min == list.axis[a].min &&
                loaded.axis[a].half == list.axis[a].half);
            CHECK(loaded.desc.periodic[a] == (periodic >> a & 1) &&
                loaded.axis[a].periodic == (periodic >> a & 1));
            CHECK(loaded.axis[a].length == (real)(periodic >> a & 1 ? 9 + 2 * a : 0));
        }
        free(bytes);
        nlist_free(&list);
        nlist_free(&loaded);
    }
}
