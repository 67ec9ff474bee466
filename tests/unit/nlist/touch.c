/* touch.c - a part of test_nlist.c: lists with a skin whose entries say whether they touch, against
   contacts in a map: history is zero where a contact begins again, events are of contacts.
   SPDX-License-Identifier: MIT OR Unlicense */

#include "../../common/nlist_touch_model.h"

/* The function of a sum: counts the steps of a contact. */
static int count_step(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    const touch_model *m = (const touch_model *)user;
    int32_t steps;
    if (!touch_test(m->pos, (double)m->radius, i, j)) return 0;
    memcpy(&steps, history, sizeof steps);
    steps++;
    memcpy(history, &steps, sizeof steps);
    own[0] = other[0] = 1;
    return 1;
}

/* One step of the program: in a loop over entries, over numbers of entries, or by a sum. */
static void use_list(touch_model *m, nlist *list, int way)
{
    nlist_sums how = {1, NLIST_AUTO, 0};
    real sums[TOUCH_MOST] = {0};
    int32_t i, steps;
    if (way > 1) {
        how.mode = (nlist_mode)(way - 2);
        how.unit = way == 2 ? (real)0.5 : 0;
        CHECK_RESULT(nlist_sum(list, &how, count_step, m, sums), NLIST_OK);
        return;
    }
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            int const touches = touch_test(m->pos, (double)m->radius, i, e.id);
            int const said = way ? nlist_touch(&e, touches)
                                 : nlist_touch_entry(list, e.entry, touches);
            CHECK(said == touches);
            if (!touches) continue;
            memcpy(&steps, e.history, sizeof steps);
            steps++;
            memcpy(e.history, &steps, sizeof steps);
        }
    }
}

static void file_and_back(nlist *list, const nlist_desc *d)
{
    nlist back = {0};
    int64_t size;
    void *bytes;
    CHECK_RESULT(nlist_save(list, NULL, 0, &size), NLIST_BUFFER_TOO_SMALL);
    bytes = malloc((size_t)size);
    CHECK_RESULT(nlist_save(list, bytes, size, &size), NLIST_OK);
    CHECK_RESULT(nlist_load(&back, d, bytes, size), NLIST_OK);
    nlist_free(list);
    *list = back;
    free(bytes);
}

static void touching_life(uint64_t seed, int64_t met[4])
{
    static const int32_t bytes[] = {4, 16, 7, 24};
    touch_model m = touch_start(seed);
    ugrid grid = {0};
    ugrid_desc cells;
    nlist list = {0};
    nlist_desc d;
    int32_t new_id[TOUCH_MOST];
    int step;
    memset(&cells, 0, sizeof cells);
    memset(&d, 0, sizeof d);
    cells.max[0] = cells.max[1] = cells.max[2] = m.size;
    cells.cell = (real)0.7;
    d.radius = m.radius;
    d.skin = (real)0.2;
    d.half = touch_roll(&m, 2);
    d.layout = (nlist_layout)touch_roll(&m, 4);
    d.width = d.layout == NLIST_HYBRID ? touch_roll(&m, 2) * 2 : d.layout == NLIST_STATIC ? 8 : 0;
    d.history = bytes[touch_roll(&m, 4)];
    d.events = touch_roll(&m, 4) > 0;
    d.contacts = d.events || touch_roll(&m, 2);
    d.grow = 1;
    for (step = 0; step < 60; step++) {
        int32_t again = 1;
        int way = touch_roll(&m, 6);
        if (way > 1 && !d.contacts) way = 0;
        if (way == 5 && d.width != 0) way = 1; /* NLIST_REDUCE has its own widths */
        if (step > 0 && touch_roll(&m, 8) == 0) {
            touch_renumber(&m, new_id);
            CHECK_RESULT(nlist_remap(&list, new_id, m.n), NLIST_OK);
            CHECK(touch_kept(&m, &list) == 0);
        }
        if (step > 0 && touch_roll(&m, 12) == 0) file_and_back(&list, &d);
        if (step > 0) touch_move(&m);
        if (step > 0) CHECK_RESULT(nlist_moved(&list, m.pos, 0, &again), NLIST_OK);
        if (again || touch_roll(&m, 8) == 0) {
            CHECK(ugrid_build(&grid, &cells, m.pos, 0, m.n) == UGRID_OK);
            CHECK_RESULT(nlist_build_ugrid(&list, &d, &grid, m.pos, 0, m.n), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(touch_built(&m, &list) == 0);
            CHECK(touch_kept(&m, &list) == 0);
        }
        touch_count(&m);
        use_list(&m, &list, way);
        CHECK(touch_kept(&m, &list) == 0);
    }
    for (step = 0; step < 4; step++) met[step] += m.met[step];
    hmfree(m.map);
    nlist_free(&list);
    ugrid_free(&grid);
}

static void test_touching(void **state)
{
    int64_t met[4] = {0, 0, 0, 0};
    int const lives = share() > 4 ? 20 : 200;
    int k;
    (void)state;
    for (k = 0; k < lives; k++) touching_life((uint64_t)k, met);
    for (k = 0; k < 4; k++) CHECK(met[k] > lives);
}

/* Two particles that are listed, touch or not, and then leave the list, which is empty from there
   on: a contact ends only where there was one. */
static void test_last_contact(void **state)
{
    static nlist_layout const layouts[] = {NLIST_COMPACT, NLIST_STATIC, NLIST_DYNAMIC,
                                           NLIST_HYBRID};
    real const near_by[6] = {0, 0, 0, 1, 0, 0}, apart[6] = {0, 0, 0, 9, 0, 0};
    int layout, half, touching;
    (void)state;
    for (layout = 0; layout < COUNT_OF(layouts); layout++)
        for (half = 0; half < 2; half++)
            for (touching = 0; touching < 2; touching++) {
                nlist list = {0};
                nlist_desc d;
                memset(&d, 0, sizeof d);
                d.radius = (real)1.5;
                d.layout = layouts[layout];
                d.half = half;
                d.events = d.contacts = 1;
                CHECK_RESULT(nlist_build_brute(&list, &d, near_by, 0, 2), NLIST_OK);
                (void)nlist_touch_entry(&list, nlist_find(&list, 0, 1), touching);
                if (!half) (void)nlist_touch_entry(&list, nlist_find(&list, 1, 0), touching);
                if (touching) {
                    CHECK_RESULT(nlist_build_brute(&list, &d, near_by, 0, 2), NLIST_OK);
                    CHECK(list.event_count[NLIST_BEGUN] == 1);
                }
                CHECK_RESULT(nlist_build_brute(&list, &d, apart, 0, 2), NLIST_OK);
                CHECK(list.total == 0 && list.event_count[NLIST_BEGUN] == 0);
                CHECK(list.event_count[NLIST_ENDED] == touching);
                nlist_free(&list);
            }
}
