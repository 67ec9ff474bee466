/* nlist_touch_model.h - contacts of particles in motion, kept in a map by the names of the two:
   what history and events must tell where entries say whether they touch (nlist_touch). For tests
   of nlist.h, serial and CUDA; the particles are tested one by one, in double.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NLIST_TOUCH_MODEL_H
#define NLIST_TOUCH_MODEL_H

#ifndef INCLUDE_STB_DS_H
#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>
#endif

enum { TOUCH_MOST = 40, TOUCH_NAMES = 120 };

typedef struct touch_contact {
    int32_t steps;          /* for how many it has lasted; 0: they do not touch */
    int32_t since, before;  /* 1: at the last build, and ever since; at the last build */
} touch_contact;

typedef struct touch_entry {
    uint64_t key;
    touch_contact value;
} touch_entry;

typedef struct touch_model {
    touch_entry *map;
    int32_t n, names;       /* particles; names that were given */
    int32_t name[TOUCH_MOST];
    nlist_real pos[3 * TOUCH_MOST], size; /* in the box 0 .. size */
    nlist_real radius;
    uint64_t random;
    int64_t met[4];         /* events that were seen; contacts that began again while listed */
} touch_model;

static inline int32_t touch_roll(touch_model *m, int32_t below)
{
    m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
    return (int32_t)((m->random >> 33) % (uint64_t)below);
}

static inline nlist_real touch_between(touch_model *m, double low, double high)
{
    return (nlist_real)(low + (high - low) * touch_roll(m, 1 << 20) / (double)(1 << 20));
}

static inline touch_contact *touch_of(touch_model *m, int32_t i, int32_t j)
{
    int32_t const a = m->name[i], b = m->name[j];
    uint64_t const key = (uint64_t)(a < b ? a : b) << 32 | (uint64_t)(a < b ? b : a);
    touch_contact const none = {0, 0, 0};
    if (hmgeti(m->map, key) < 0) hmput(m->map, key, none);
    return &hmgetp(m->map, key)->value;
}

/* 1 if two of these points are no further apart than the radius. */
static inline int touch_test(const nlist_real *pos, double radius, int32_t i, int32_t j)
{
    double d2 = 0;
    int a;
    for (a = 0; a < 3; a++) {
        double const d = (double)pos[3 * j + a] - (double)pos[3 * i + a];
        d2 += d * d;
    }
    return d2 <= radius * radius;
}

static inline touch_model touch_start(uint64_t seed)
{
    touch_model m;
    int32_t k;
    memset(&m, 0, sizeof m);
    m.random = seed * 0x9E3779B97F4A7C15ull + 1;
    m.n = m.names = 12 + touch_roll(&m, TOUCH_MOST - 11);
    m.size = (nlist_real)2.2;
    m.radius = (nlist_real)0.5;
    for (k = 0; k < m.n; k++) m.name[k] = k;
    for (k = 0; k < 3 * m.n; k++) m.pos[k] = touch_between(&m, 0, 2.2);
    return m;
}

/* Particles move: before a build, or the use of the last list. */
static inline void touch_move(touch_model *m)
{
    int32_t k;
    for (k = 0; k < 3 * m->n; k++) {
        nlist_real const x = m->pos[k] + touch_between(m, -0.03, 0.03);
        if (x > 0 && x < m->size) m->pos[k] = x;
    }
}

/* A step uses the list: contacts begin, last and end. */
static inline void touch_count(touch_model *m)
{
    int32_t i, j;
    for (i = 0; i < m->n; i++) {
        for (j = i + 1; j < m->n; j++) {
            touch_contact *c = touch_of(m, i, j);
            if (touch_test(m->pos, (double)m->radius, i, j)) {
                if (c->steps++ == 0 && c->before) m->met[3]++;
            } else c->steps = c->since = 0;
        }
    }
}

/* New numbers for all; the last ones may be deleted, and new ones come. new_id: for the list. */
static inline void touch_renumber(touch_model *m, int32_t new_id[TOUCH_MOST])
{
    touch_model const was = *m;
    int32_t k, left = m->n - touch_roll(m, 3);
    if (m->names + 2 > TOUCH_NAMES) left = m->n;
    for (k = 0; k < was.n; k++) new_id[k] = k < left ? (k + 5) % left : -1;
    for (k = 0; k < left; k++) {
        m->name[new_id[k]] = was.name[k];
        memcpy(m->pos + 3 * new_id[k], was.pos + 3 * k, 3 * sizeof *m->pos);
    }
    for (; left < was.n; left++) {
        m->name[left] = m->names++;
        for (k = 0; k < 3; k++) m->pos[3 * left + k] = touch_between(m, 0, 2.2);
    }
}

/* A build has been made: checks its events. Pairs that the new list does not have are no contacts.
   Returns the number of faults. */
static inline int touch_built(touch_model *m, const nlist *list)
{
    int64_t expected[NLIST_EVENT_KINDS] = {0, 0, 0}, k;
    int32_t i, j;
    int kind, faults = 0;
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        for (k = 0; k < list->event_count[kind]; k++) {
            nlist_event const e = list->event[kind][k];
            touch_contact const c = *touch_of(m, e.i, e.j);
            int const listed = nlist_find_pair(list, e.i, e.j) >= 0;
            faults += kind == NLIST_BEGUN       ? !(listed && c.steps > 0 && !c.since)
                      : kind == NLIST_PERSISTED ? !(listed && c.since)
                                                : !(c.before && !(listed && c.since));
        }
        m->met[kind] += list->event_count[kind];
    }
    for (i = 0; i < m->n; i++) {
        for (j = i + 1; j < m->n; j++) {
            touch_contact *c = touch_of(m, i, j);
            int const listed = nlist_find_pair(list, i, j) >= 0, now = listed && c->steps > 0;
            expected[NLIST_BEGUN] += now && !c->since;
            expected[NLIST_PERSISTED] += listed && c->since;
            expected[NLIST_ENDED] += c->before && !(listed && c->since);
            c->since = c->before = now;
            if (!now) c->steps = 0;
        }
    }
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++)
        faults += list->desc.events && expected[kind] != list->event_count[kind];
    return faults;
}

/* Checks that each entry has the number of steps of its contact. Returns the number of faults. */
static inline int touch_kept(touch_model *m, const nlist *list)
{
    int32_t i, steps;
    int faults = 0;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            memcpy(&steps, e.history, sizeof steps);
            faults += steps != touch_of(m, i, e.id)->steps;
        }
    }
    return faults;
}

#endif
