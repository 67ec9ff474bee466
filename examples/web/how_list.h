/* how_list.h - a contact list that remembers, by nlist.h, for how.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef HOW_LIST_H
#define HOW_LIST_H

enum { LIST_ENTRIES = HOW_MOST * (HOW_MOST - 1) / 2 };

/* What an entry remembers: zeros when its contact begins. */
typedef struct list_memory {
    int32_t steps;      /* lists it has been in, this one among them */
    int32_t was;        /* 1 + its entry in the list before; 0: the contact is new */
} list_memory;

static struct list_steps {
    ugrid grid;
    nlist list;
    int32_t start[HOW_MOST + 1];
    int32_t steps[LIST_ENTRIES], was[LIST_ENTRIES];
    int32_t event[NLIST_EVENT_KINDS][2 * LIST_ENTRIES]; /* pairs i, j */
} list_steps;

/* Before a build: each entry writes down which one it is. */
static void list_write_down(void)
{
    nlist *list = &list_steps.list;
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) ((list_memory *)e.history)->was = (int32_t)e.entry + 1;
    }
}

static void list_read(void)
{
    struct list_steps *s = &list_steps;
    nlist *list = &s->list;
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        s->start[i] = (int32_t)e.at;
        while (nlist_next(&e)) {
            list_memory *m = (list_memory *)e.history;
            s->steps[e.entry] = ++m->steps;
            s->was[e.entry] = m->was - 1;
        }
    }
    s->start[list->n] = (int32_t)list->total;
}

static void list_give_events(const char *name, int kind)
{
    struct list_steps *s = &list_steps;
    int32_t const count = (int32_t)s->list.event_count[kind];
    int32_t k;
    for (k = 0; k < count; k++) {
        s->event[kind][2 * k] = s->list.event[kind][k].i;
        s->event[kind][2 * k + 1] = s->list.event[kind][k].j;
    }
    how_ints(name, s->event[kind], 2 * count);
}

static const char *list_build(int32_t n)
{
    struct list_steps *s = &list_steps;
    ugrid_desc cells;
    nlist_desc desc;
    ugrid_result made;
    nlist_result result;
    memset(&cells, 0, sizeof cells);
    cells.dim = 2;
    cells.cell = 1;
    made = ugrid_build(&s->grid, &cells, how.pos, 0, n);
    if (made != UGRID_OK) return ugrid_result_text(made);
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.radius = 1;
    desc.half = 1;
    desc.history = sizeof(list_memory);
    desc.events = 1;
    result = nlist_build_ugrid(&s->list, &desc, &s->grid, how.pos, 0, n);
    return result == NLIST_OK ? NULL : nlist_result_text(result);
}

static const char *list_make(int32_t n, int first)
{
    struct list_steps *s = &list_steps;
    const char *wrong;
    int32_t entries;
    if (first) nlist_free(&s->list);
    else list_write_down();
    wrong = list_build(n);
    if (wrong) return wrong;
    list_read();
    entries = (int32_t)s->list.total;
    how_ints("start", s->start, n + 1);
    how_ints("partner", s->list.rows[s->list.current].partner, entries);
    how_ints("steps", s->steps, entries);
    how_ints("was", s->was, entries);
    list_give_events("began", NLIST_BEGUN);
    list_give_events("persisted", NLIST_PERSISTED);
    list_give_events("ended", NLIST_ENDED);
    return NULL;
}

#endif /* HOW_LIST_H */
