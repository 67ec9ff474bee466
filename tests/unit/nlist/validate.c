/* validate.c - a part of test_nlist.c: nlist_validate finds damage to each array, and reads
   nothing out of bounds while it looks.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct word { void *at; size_t bytes; int64_t count; int must; } word;

/* The arrays of a list. must: any other number there is damage. */
static int arrays_of(nlist *list, word *words)
{
    nlist_rows *rows = &list->rows[list->current];
    word const all[] = {
        {rows->count, 4, rows->n, 1},
        {rows->slot, 4, rows->slot ? (int64_t)rows->n * rows->width : 0, 0},
        {rows->start, 8, rows->start ? (int64_t)rows->n + 1 : 0, 1},
        {rows->partner, 4, rows->entries, 0},
        {rows->own, 4, rows->entries, 1},
        {rows->link, 4, rows->entries, 1},
        {rows->head, 4, rows->n, 1},
        {rows->touched, 4, rows->touched_count, 1},
        {&list->total, 8, 1, 1},
        {&rows->touched_count, 4, rows->touched ? 1 : 0, 1},
        {&rows->n, 4, 1, 1},
    };
    int k, used = 0;
    for (k = 0; k < COUNT_OF(all); k++) if (all[k].at && all[k].count) words[used++] = all[k];
    return used;
}

static int64_t odd_number(int64_t was, int64_t n)
{
    uint64_t const w = (uint64_t)was; /* wraps around where it must */
    int64_t const odd[] = {(int64_t)(w + 1), (int64_t)(w - 1), (int64_t)(0 - w), was ^ 0x10000, -1,
        0, n - 1, n, n + 1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, roll((int)n)};
    return odd[roll(COUNT_OF(odd))];
}

/* One word damaged: returns whether it is another word now. */
static int damage(const word *w, int64_t k, int64_t n, uint64_t *was)
{
    uint8_t *at = (uint8_t *)w->at + (size_t)k * w->bytes;
    int64_t old = 0, value;
    memcpy(was, at, w->bytes);
    if (w->bytes == 4) { int32_t v; memcpy(&v, at, 4); old = v; } else memcpy(&old, at, 8);
    value = odd_number(old, n);
    if (w->bytes == 4) { int32_t const v = (int32_t)(uint32_t)(uint64_t)value; memcpy(at, &v, 4);
        } else memcpy(at, &value, 8);
    return memcmp(at, was, w->bytes) != 0;
}

/* A partner or slot that became another one is damage where it is out of range, the row's own,
   twice in the row, or not where a half list has it; else it is another list. */
static int is_damage(const nlist *list)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            nlist_each rest = e;
            if (e.id < 0 || e.id >= list->n || e.id == i) return 1;
            while (nlist_next(&rest)) if (rest.id == e.id) return 1;
            if (list->desc.half && nlist_find(list, e.id, i) >= 0) return 1;
        }
    }
    return 0;
}

static int unused_slot(const nlist *list, const word *w, int64_t k)
{
    const nlist_rows *rows = &list->rows[list->current];
    return w->at == (void *)rows->slot && k % rows->width >= rows->count[k / rows->width];
}

static void test_validate_finds_damage(void **state)
{
    int64_t found = 0, others = 0;
    int counter, used, step;
    (void)state;
    for (counter = 0; counter < 64; counter++) {
        nlist list = {0};
        oracle_scene s;
        word words[12];
        nlist_desc d;
        if (!chosen(counter)) continue;
        oracle_make(&s, counter % ORACLE_EMPTY, 3, roll(8), 5 + roll(20), 0, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.width = d.layout == NLIST_HYBRID ? roll(4) : 30;
        d.half = counter >> 2 & 1;
        d.history = counter & 8 ? 4 : 0;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        used = arrays_of(&list, words);
        for (step = 0; step < 400; step++) {
            const word *w = &words[roll(used)];
            int64_t const k = roll((int)w->count);
            uint64_t was = 0;
            int const other = damage(w, k, s.n, &was);
            nlist_result const r = nlist_validate(&list);
            if (!other) CHECK_RESULT(r, NLIST_OK);
            else if (w->must || unused_slot(&list, w, k) || is_damage(&list))
                CHECK_RESULT(r, NLIST_INVALID);
            found += r == NLIST_INVALID;
            others += other && r == NLIST_OK;
            memcpy((uint8_t *)w->at + (size_t)k * w->bytes, &was, w->bytes);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        }
        oracle_forget(&s);
        nlist_free(&list);
    }
    CHECK(small_run() || (found * share() > 8000 && others < found));
}

/* DYNAMIC: rows that have entries are in `touched`, each once. */
static void test_validate_touched_rows(void **state)
{
    static const int32_t damages[] = {1, 2, 3, -1, 4};
    nlist list = {0};
    nlist_desc d = plain_desc();
    nlist_rows *const rows = &list.rows[0];
    int32_t first;
    int k;
    (void)state;
    d.layout = NLIST_DYNAMIC;
    d.half = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, four, 0, 4), NLIST_OK);
    CHECK(list.current == 0 && rows->touched_count == 3 && rows->count[3] == 0);
    CHECK(rows->touched[1] == 1 && rows->touched[2] == 2);
    first = rows->touched[0];
    for (k = 0; k < COUNT_OF(damages); k++) {
        rows->touched[0] = damages[k];
        CHECK_RESULT(nlist_validate(&list), NLIST_INVALID);
    }
    rows->touched[0] = first;
    rows->touched_count = 2;
    CHECK_RESULT(nlist_validate(&list), NLIST_INVALID);
    rows->touched_count = 3;
    CHECK_RESULT(nlist_validate(&list), NLIST_OK);
    nlist_free(&list);
}

/* Many words damaged at once: whatever it says, it comes back. */
static void test_validate_is_safe(void **state)
{
    int counter, step, k;
    (void)state;
    for (counter = 0; counter < 32; counter++) {
        nlist list = {0};
        oracle_scene s;
        word words[12];
        nlist_desc d;
        int used;
        if (!chosen(counter)) continue;
        oracle_make(&s, ORACLE_CLUSTERED, 3, 0, 12, 0, &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.width = d.layout == NLIST_HYBRID ? 2 : 30;
        d.half = counter >> 2 & 1;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        used = arrays_of(&list, words);
        for (step = 0; step < 400; step++) {
            uint64_t was;
            if (step % 40 == 0) {
                CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
                used = arrays_of(&list, words);
            }
            for (k = roll(4); k >= 0; k--) {
                const word *w = &words[roll(used)];
                if (w->at != (void *)&list.rows[list.current].n)
                    (void)damage(w, roll((int)w->count), s.n, &was);
            }
            (void)nlist_validate(&list);
        }
        list.rows[0].n = list.rows[1].n = s.n;
        oracle_forget(&s);
        nlist_free(&list);
    }
}
