/* nlist_contacts.h - the second half of nlist_oracle.h, which includes it: a map of contacts by the
   names of their particles, what history and events have to be by this map, and a list as it was.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NLIST_CONTACTS_H
#define NLIST_CONTACTS_H

/* ------------------------------------------------------------------------------------------------
   The memory of contacts
   ---------------------------------------------------------------------------------------------- */

/* What is known of a contact. */
typedef struct oracle_contact {
    uint64_t key;       /* names of the row's particle and of the partner (triangles: its key) */
    uint32_t stamp;     /* what its history was filled with last; 0: zeros */
    uint32_t seen;      /* the step at which it was last in the list */
} oracle_contact;

typedef struct oracle_grave { uint64_t key; } oracle_grave;

typedef struct oracle_memory {
    oracle_contact *contacts;   /* stb_ds map */
    /* stb_ds array, by id: what the particle has been called from the beginning */
    int32_t *name;
    int32_t names;              /* names that were given */
    uint32_t step, stamp;       /* builds; numbers written */
    /* with the last build: entries; of pairs in both rows each counts */
    int64_t begun, persisted, ended;
    oracle_grave *graves;       /* stb_ds map: contacts that ended */
    int64_t reborn;             /* and began again, ever */
} oracle_memory;

WL_FN void oracle_memory_free(oracle_memory *m)
{
    hmfree(m->contacts);
    hmfree(m->graves);
    arrfree(m->name);
    memset(m, 0, sizeof *m);
}

/* Byte k of a history filled with `stamp`. */
WL_FN uint8_t oracle_byte(uint32_t stamp, int32_t k)
{
    uint32_t x = stamp * 2654435761u ^ (uint32_t)(k / 4) * 0x9E3779B9u;
    x ^= x >> 15;
    if (stamp == 0) return 0;
    return (uint8_t)(x * 0x85EBCA6Bu >> (8 * (k % 4)) & 0xFFu);
}

WL_FN void oracle_write(void *history, int32_t bytes, uint32_t stamp)
{
    int32_t k;
    for (k = 0; k < bytes; k++) ((uint8_t *)history)[k] = oracle_byte(stamp, k);
}

WL_FN int oracle_holds(const void *history, int32_t bytes, uint32_t stamp)
{
    int32_t k;
    for (k = 0; k < bytes; k++)
        if (((const uint8_t *)history)[k] != oracle_byte(stamp, k)) return 0;
    return 1;
}

WL_FN uint64_t oracle_key(const oracle_memory *m, const nlist *list, int32_t i, int32_t j)
{
    int32_t const partner = list->keys ? j : m->name[j];
    return (uint64_t)(uint32_t)m->name[i] << 32 | (uint32_t)partner;
}

WL_FN ptrdiff_t oracle_look_up(oracle_memory *m, uint64_t key) { return hmgeti(m->contacts, key); }

WL_FN void oracle_learn(oracle_memory *m, uint64_t key)
{
    oracle_contact c;
    memset(&c, 0, sizeof c);
    c.key = key;
    c.seen = m->step;
    hmputs(m->contacts, c);
    if (hmgeti(m->graves, key) >= 0) m->reborn++;
}

/* Particles from the old n on are new and get names. */
WL_FN void oracle_name_new_ones(oracle_memory *m, int32_t n)
{
    while (arrlen(m->name) < n) arrput(m->name, m->names++);
}

/* An entry of a list that was just built: its bytes are what the memory says. */
WL_FN const char *oracle_remember_entry(oracle_memory *m, const nlist *list, int32_t i,
    const nlist_each *e)
{
    uint64_t const key = oracle_key(m, list, i, e->id);
    ptrdiff_t const at = oracle_look_up(m, key);
    uint32_t const stamp = at >= 0 ? m->contacts[at].stamp : 0;
    if (list->desc.history && !oracle_holds(e->history, list->desc.history, stamp))
        return oracle_fault(at >= 0 ? "history was not kept" : "history does not begin with zeros",
            i, e->id);
    if (at >= 0 && m->contacts[at].seen == m->step)
        return oracle_fault("a contact twice", i, e->id);
    if (at < 0) oracle_learn(m, key);
    else m->contacts[at].seen = m->step;
    *(at < 0 ? &m->begun : &m->persisted) += 1;
    return NULL;
}

/* Drops what was not seen in this step. */
WL_FN void oracle_drop(oracle_memory *m)
{
    ptrdiff_t k;
    for (k = hmlen(m->contacts) - 1; k >= 0; k--) {
        oracle_grave grave;
        if (m->contacts[k].seen == m->step) continue;
        grave.key = m->contacts[k].key;
        m->ended++;
        (void)hmdel(m->contacts, grave.key);
        hmputs(m->graves, grave);
    }
}

/* After every build: compares each entry's history with the memory, which then takes the new list
   as its own. (oracle_check_events comes before it, since it needs both.) */
WL_FN const char *oracle_remember(oracle_memory *m, const nlist *list)
{
    const char *wrong = NULL;
    int32_t i;
    oracle_name_new_ones(m, list->n);
    /* these are gone, and their contacts end */
    if (arrlen(m->name) > list->n) arrsetlen(m->name, (size_t)list->n);
    m->step++;
    m->begun = m->persisted = m->ended = 0;
    for (i = 0; i < list->n && !wrong; i++) {
        nlist_each e = nlist_of(list, i);
        while (!wrong && nlist_next(&e)) wrong = oracle_remember_entry(m, list, i, &e);
    }
    oracle_drop(m);
    return wrong;
}

/* The list as it is, without a build in between: nothing began or ended, and all bytes are as they
   were. */
WL_FN const char *oracle_recall(oracle_memory *m, const nlist *list)
{
    int64_t entries = 0;
    int32_t i;
    if (list->n != arrlen(m->name)) return oracle_fault("another n", list->n, arrlen(m->name));
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, i, e.id));
            entries++;
            if (at < 0) return oracle_fault("a contact from nowhere", i, e.id);
            if (list->desc.history &&
                !oracle_holds(e.history, list->desc.history, m->contacts[at].stamp))
                return oracle_fault("history was not kept", i, e.id);
        }
    }
    return entries == hmlen(m->contacts) ? NULL :
        oracle_fault("contacts got lost", entries, hmlen(m->contacts));
}

/* Writes into one of `every` entries, as a force law would. */
WL_FN void oracle_stamp(oracle_memory *m, nlist *list, int every, wl_random *dice)
{
    int32_t i;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, i, e.id));
            if (at < 0 || oracle_roll(dice, every)) continue;
            m->contacts[at].stamp = ++m->stamp;
            oracle_write(e.history, list->desc.history, m->stamp);
        }
    }
}

/* Particle i is now new_id[i] (-1: gone); ids that no particle got are new particles, named in
   ascending order. */
WL_FN void oracle_rename(oracle_memory *m, const int32_t *new_id, int32_t n, int keys)
{
    int32_t const old = (int32_t)arrlen(m->name);
    int32_t *name = NULL;
    uint8_t *alive = NEW(uint8_t, m->names);
    ptrdiff_t k;
    int32_t i;
    memset(alive, 0, (size_t)m->names);
    for (i = 0; i < n; i++) arrput(name, -1);
    for (i = 0; i < old; i++)
        if (new_id[i] >= 0) name[new_id[i]] = m->name[i], alive[m->name[i]] = 1;
    for (k = hmlen(m->contacts) - 1; k >= 0; k--) {
        uint64_t const key = m->contacts[k].key;
        if (alive[key >> 32] && (keys || alive[key & 0xFFFFFFFFu])) continue;
        (void)hmdel(m->contacts, key);
    }
    for (i = 0; i < n; i++) if (name[i] < 0) name[i] = m->names++;
    arrfree(m->name);
    m->name = name;
    free(alive);
}

/* ------------------------------------------------------------------------------------------------
   Events
   ---------------------------------------------------------------------------------------------- */

/* The memory's entry of a pair, in whichever row, -1 = none. */
WL_FN ptrdiff_t oracle_look_up_pair(oracle_memory *m, const nlist *list, int32_t i, int32_t j)
{
    ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, i, j));
    return at >= 0 || list->keys ? at : oracle_look_up(m, oracle_key(m, list, j, i));
}

/* Is `entry` that of the pair in the list? */
WL_FN int oracle_entry_is(const nlist *list, const nlist_event *v)
{
    return v->entry >= 0 && (v->entry == nlist_find(list, v->i, v->j) ||
        (!list->keys && v->entry == nlist_find(list, v->j, v->i)));
}

/* The bytes of a contact that ended: those of either of its rows. */
WL_FN int oracle_last_words(oracle_memory *m, const nlist *list, const nlist_event *v)
{
    ptrdiff_t const at = oracle_look_up(m, oracle_key(m, list, v->i, v->j));
    ptrdiff_t const turned = list->keys ? -1 : oracle_look_up(m, oracle_key(m, list, v->j, v->i));
    const void *bytes = nlist_history_before(list, v->entry);
    if (list->desc.history == 0) return bytes == NULL;
    if (!bytes) return 0;
    return (at >= 0 && oracle_holds(bytes, list->desc.history, m->contacts[at].stamp))
           || (turned >= 0 && oracle_holds(bytes, list->desc.history, m->contacts[turned].stamp));
}

WL_FN const char *oracle_check_event(oracle_memory *m, const nlist *list, int kind,
    const nlist_event *v)
{
    int const before = oracle_look_up_pair(m, list, v->i, v->j) >= 0;
    int const now = (list->keys ? nlist_find(list, v->i, v->j) :
        nlist_find_pair(list, v->i, v->j)) >= 0;
    if (!list->keys && v->i >= v->j)
        return oracle_fault("an event's ids do not ascend", v->i, v->j);
    if (before != (kind != NLIST_BEGUN))
        return oracle_fault("an event and the list before contradict", v->i, v->j);
    if (now != (kind != NLIST_ENDED))
        return oracle_fault("an event and the list contradict", v->i, v->j);
    if (kind == NLIST_ENDED)
        return oracle_last_words(m, list, v) ? NULL :
            oracle_fault("an ended contact without its bytes", v->i, v->j);
    return oracle_entry_is(list, v) ? NULL : oracle_fault("an event of another entry", v->i, v->j);
}

/* After a build and before oracle_remember: what the events say must follow from the memory (the
   list before) and from the list. Each pair once, none missing. */
WL_FN const char *oracle_check_events(oracle_memory *m, const nlist *list)
{
    int64_t const contacts = list->desc.half || list->keys ? 1 : 2;
    oracle_grave *seen = NULL, one;
    const int64_t *count = list->event_count;
    const char *wrong = NULL;
    int64_t k;
    int kind;
    oracle_name_new_ones(m, list->n);
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++)
            for (k = 0; k < list->event_count[kind] && !wrong; k++) {
        const nlist_event *v = &list->event[kind][k];
        one.key = (uint64_t)(uint32_t)v->i << 32 | (uint32_t)v->j;
        if (!list->keys && (v->i < 0 || v->j >= arrlen(m->name)))
            wrong = oracle_fault("an event out of range", v->i, v->j);
        else if (hmgeti(seen, one.key) >= 0) wrong = oracle_fault("an event twice", v->i, v->j);
        else wrong = oracle_check_event(m, list, kind, v);
        hmputs(seen, one);
    }
    hmfree(seen);
    if (wrong) return wrong;
    if ((count[NLIST_BEGUN] + count[NLIST_PERSISTED]) * contacts != list->total)
        return oracle_fault("events of the new list are missing", count[NLIST_BEGUN],
            count[NLIST_PERSISTED]);
    if ((count[NLIST_PERSISTED] + count[NLIST_ENDED]) * contacts != hmlen(m->contacts))
        return oracle_fault("events of the old list are missing", count[NLIST_PERSISTED],
            count[NLIST_ENDED]);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
   A list as it was
   ---------------------------------------------------------------------------------------------- */

/* Everything that a refusal must leave alone. */
typedef struct oracle_snapshot {
    int32_t n, keys, half, bytes;
    nlist_layout layout;
    int64_t total;
    int32_t *ids, *counts;      /* stb_ds arrays, row by row */
    int64_t *entries;
    uint8_t *history;
    int64_t events[NLIST_EVENT_KINDS];
    nlist_event *event;         /* all kinds, one after the other */
} oracle_snapshot;

WL_FN void oracle_take(oracle_snapshot *shot, const nlist *list)
{
    int32_t i, b;
    int kind;
    int64_t k;
    memset(shot, 0, sizeof *shot);
    shot->n = list->n;
    shot->keys = list->keys;
    shot->half = list->desc.half;
    shot->layout = list->desc.layout;
    shot->bytes = list->desc.history;
    shot->total = list->total;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        int32_t count = 0;
        for (; nlist_next(&e); count++) {
            arrput(shot->ids, e.id);
            arrput(shot->entries, e.entry);
            for (b = 0; b < shot->bytes; b++)
                arrput(shot->history, ((const uint8_t *)e.history)[b]);
        }
        arrput(shot->counts, count);
    }
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        shot->events[kind] = list->desc.events ? list->event_count[kind] : 0;
        for (k = 0; k < shot->events[kind]; k++) arrput(shot->event, list->event[kind][k]);
    }
}

WL_FN void oracle_drop_snapshot(oracle_snapshot *shot)
{
    arrfree(shot->ids);
    arrfree(shot->counts);
    arrfree(shot->entries);
    arrfree(shot->history);
    arrfree(shot->event);
    memset(shot, 0, sizeof *shot);
}

WL_FN int oracle_same_bytes(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

#define ORACLE_SAME(array) \
    (arrlen(now.array) == arrlen(shot->array) && \
     oracle_same_bytes(now.array, shot->array, (size_t)arrlen(now.array) * sizeof *now.array))

/* The list still is what it was: rows, their order, entries, history, events. */
WL_FN const char *oracle_check_unchanged(const oracle_snapshot *shot, const nlist *list)
{
    oracle_snapshot now;
    const char *wrong = NULL;
    oracle_take(&now, list);
    if (now.n != shot->n || now.total != shot->total) wrong = "another n or total";
    else if (now.keys != shot->keys || now.half != shot->half || now.layout != shot->layout ||
        now.bytes != shot->bytes)
        wrong = "another desc";
    else if (!ORACLE_SAME(ids) || !ORACLE_SAME(counts)) wrong = "other rows";
    else if (!ORACLE_SAME(entries)) wrong = "other entries";
    else if (!ORACLE_SAME(history)) wrong = "other history";
    else if (memcmp(now.events, shot->events, sizeof now.events) != 0 || !ORACLE_SAME(event))
        wrong = "other events";
    oracle_drop_snapshot(&now);
    return wrong;
}

#endif /* NLIST_CONTACTS_H */
