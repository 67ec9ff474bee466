/* nlist_handover.h - every way of handing history over, for a few particles: all sequences of
   builds, refused builds, insertions, deletions, new orders and new ghosts.
   SPDX-License-Identifier: MIT OR Unlicense

   The model is a map of contacts, by the names of the owner of the row and of the partner. A
   particle keeps its name whatever its id is, and later ones have higher names. The list is built
   from pairs, all graphs of so many particles; after each step it must have the rows, the bytes and
   the events of the model. Then every entry gets bytes of its own.

   The list is behind a `handover_driver`: serial in unit/nlist/test_nlist_handover.c, on the GPU in
   cuda/nlist/handover.cu. A driver can go back to a state that it saved, so that sequences share
   their beginning: a tree of calls. */

#ifndef NLIST_HANDOVER_H
#define NLIST_HANDOVER_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HANDOVER_MOST = 4, HANDOVER_NAMES = 12, HANDOVER_DEPTH = 6, HANDOVER_WORDS = 4 };

typedef struct handover_driver {
    void *state;
    int refuses_pairs;  /* 1: a pair with itself is an error, and the list is as it was */
    nlist_result (*build)(void *state, const nlist_desc *desc, const int32_t *pair, int64_t m,
                          int32_t n);
    /* rows -1: nlist_remap */
    nlist_result (*remap)(void *state, const int32_t *new_id, int32_t n, int32_t rows);
    const nlist *(*view)(void *state);              /* the list, on the host */
    void (*stamp)(void *state, uint32_t step);      /* handover_mark for all entries */
    void (*save)(void *state, int depth);
    void (*restore)(void *state, int depth);
} handover_driver;

/* What all builds of a sequence ask for. */
typedef struct handover_case {
    nlist_layout layout[2];     /* of even and odd steps */
    int32_t width, capacity;
    int half, ghosts, events;   /* ghosts: the last particle is one, and remaps change that */
    int32_t words;              /* of history */
} handover_case;

typedef struct handover_model {
    int32_t n, rows, next;                      /* next: name */
    int32_t name[HANDOVER_MOST];                /* by id */
    uint8_t listed[HANDOVER_NAMES][HANDOVER_NAMES];
    uint32_t mark[HANDOVER_NAMES][HANDOVER_NAMES]; /* 0: the contact has just begun */
} handover_model;

typedef struct handover {
    handover_driver driver;
    handover_case c;
    int depth;                                  /* steps after the first build */
    int64_t every, turn;                        /* of the graphs of four particles, one in so many
                                                   is built; of all steps, one in `rare` is done */
    int64_t rare;
    int64_t steps, failures;
    int trail[HANDOVER_DEPTH];
    char said[320];                             /* the first failure */
} handover;

/* ---- marks: what an entry holds -------------------------------------------------------------- */

/* A number of its own for each step and entry, never 0. */
NLIST_FN uint32_t handover_mark(uint32_t step, int32_t i, int32_t j)
{
    return (step + 1) << 16 | (uint32_t)(i + 1) << 8 | (uint32_t)(j + 1);
}

NLIST_FN uint32_t handover_word(uint32_t mark, int32_t k)
{
    return mark ? mark + (uint32_t)k * 0x01000000u : 0;
}

NLIST_FN void handover_put(void *history, int32_t words, uint32_t mark)
{
    int32_t k;
    for (k = 0; k < words; k++) ((uint32_t *)history)[k] = handover_word(mark, k);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void handover_fail(handover *h, int step, const char *what)
{
    size_t used;
    int k;
    if (h->failures++ > 0) return;
    snprintf(h->said, sizeof h->said, "%s; layouts %d %d, width %d, half %d, ghosts %d; steps",
             what, (int)h->c.layout[0], (int)h->c.layout[1], (int)h->c.width, h->c.half,
             h->c.ghosts);
    for (k = 0; k <= step; k++) {
        used = strlen(h->said);
        snprintf(h->said + used, sizeof h->said - used, " %d", h->trail[k]);
    }
}

/* 1 if a contact of i and j has an entry in row i. */
static int handover_owns(const handover *h, const handover_model *m, int32_t i, int32_t j)
{
    return i != j && i < m->rows &&
           (!h->c.half || j >= m->rows || m->name[i] < m->name[j]);
}

static int handover_holds(const void *history, int32_t words, uint32_t mark)
{
    int32_t k;
    for (k = 0; k < words; k++)
        if (((const uint32_t *)history)[k] != handover_word(mark, k)) return 0;
    return 1;
}

/* The rows and bytes of the list are those of the model. */
static void handover_check_rows(handover *h, const handover_model *m, int step)
{
    const nlist *list = h->driver.view(h->driver.state);
    int32_t i, a, b, entries = 0, want = 0;
    if (!list || list->n != m->n || list->row_count != m->rows) {
        handover_fail(h, step, "sizes");
        return;
    }
    for (i = 0; i < m->n; i++) {
        nlist_each e = nlist_of(list, i);
        uint8_t met[HANDOVER_MOST] = {0};
        while (nlist_next(&e)) {
            if (e.id < 0 || e.id >= m->n || met[e.id]++ ||
                !m->listed[m->name[i]][m->name[e.id]]) {
                handover_fail(h, step, "an entry that should not be there");
                return;
            }
            if (!handover_holds(e.history, h->c.words, m->mark[m->name[i]][m->name[e.id]]))
                handover_fail(h, step, "bytes of another contact");
            entries++;
        }
    }
    for (a = 0; a < HANDOVER_NAMES; a++)
        for (b = 0; b < HANDOVER_NAMES; b++) want += m->listed[a][b];
    if (entries != want) handover_fail(h, step, "entries are missing");
}

/* An event of kind `kind` is right: `from` has its entry, `other` has it or not. */
static void handover_check_event(handover *h, const handover_model *from,
                                 const handover_model *other, const nlist_event *event, int kind,
                                 const void *bytes, int step)
{
    int const first = handover_owns(h, from, event->i, event->j);
    int32_t const a = from->name[first ? event->i : event->j],
                  b = from->name[first ? event->j : event->i];
    if (!from->listed[a][b] || !other->listed[a][b] != (kind != NLIST_PERSISTED))
        handover_fail(h, step, "an event that was not");
    else if (!handover_holds(bytes, h->c.words, from->mark[a][b]))
        handover_fail(h, step, "an event with bytes of another contact");
}

/* Entries of one model that the other has (`both`), or has not, as events count them. */
static int32_t handover_count(const handover *h, const handover_model *from,
                              const handover_model *other, int both)
{
    int32_t i, j, count = 0;
    for (i = 0; i < from->n; i++)
        for (j = 0; j < from->n; j++) {
            int32_t const a = from->name[i], b = from->name[j];
            if (from->listed[a][b] && (h->c.half || i < j)) count += other->listed[a][b] == both;
        }
    return count;
}

static void handover_check_events(handover *h, const handover_model *old, const handover_model *m,
                                  int step)
{
    const nlist *list = h->driver.view(h->driver.state);
    int kind;
    if (!list || h->failures) return;
    for (kind = 0; kind < NLIST_EVENT_KINDS; kind++) {
        const handover_model *from = kind == NLIST_ENDED ? old : m,
                             *other = kind == NLIST_ENDED ? m : old;
        int64_t k;
        if (list->event_count[kind] != handover_count(h, from, other, kind == NLIST_PERSISTED)) {
            handover_fail(h, step, "events are missing");
            return;
        }
        for (k = 0; k < list->event_count[kind]; k++) {
            const nlist_event *event = &list->event[kind][k];
            const void *bytes = kind == NLIST_ENDED ? nlist_history_before(list, event->entry)
                                                    : nlist_history(list, event->entry);
            if (bytes) handover_check_event(h, from, other, event, kind, bytes, step);
        }
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Renumbers the model. was: the old ids of the new particles, -1 = new. */
static void handover_rename(const handover *h, handover_model *m, const int32_t *was, int32_t n,
                            int32_t rows)
{
    handover_model const old = *m;
    int32_t i, j;
    m->n = n;
    m->rows = rows;
    for (i = 0; i < n; i++) m->name[i] = was[i] >= 0 ? old.name[was[i]] : m->next++;
    memset(m->listed, 0, sizeof m->listed);
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            m->listed[m->name[i]][m->name[j]] =
                (uint8_t)(old.listed[m->name[i]][m->name[j]] && handover_owns(h, m, i, j));
}

static int32_t handover_pairs_of(int32_t n) { return n * (n - 1) / 2; }

/* Rows that a build asks for. */
static int32_t handover_rows(const handover *h, int32_t n)
{
    return h->c.ghosts && n > 0 ? n - 1 : n;
}

static nlist_desc handover_desc(const handover *h, int32_t n, int step)
{
    nlist_desc d;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.layout = h->c.layout[step % 2];
    d.width = h->c.width;
    d.capacity = h->c.capacity;
    d.half = h->c.half;
    d.events = h->c.events;
    d.history = (int32_t)sizeof(uint32_t) * h->c.words;
    d.rows = !h->c.ghosts || n == 0 ? 0 : n == 1 ? NLIST_NO_ROWS : n - 1;
    return d;
}

/* The pairs of a graph (a bit for each, in order), and the model's entries. Returns the longest
   row. */
static int32_t handover_list_pairs(const handover *h, handover_model *m, uint32_t graph,
                                   int32_t *pair, int64_t *pairs)
{
    handover_model const old = *m;
    int32_t i, j, bit = 0, longest = 0, length[HANDOVER_MOST] = {0};
    memset(m->listed, 0, sizeof m->listed);
    memset(m->mark, 0, sizeof m->mark);
    *pairs = 0;
    for (i = 0; i < m->n; i++)
        for (j = i + 1; j < m->n; j++, bit++) {
            int turn;
            if (!(graph >> bit & 1)) continue;
            pair[2 * *pairs] = i;
            pair[2 * *pairs + 1] = j;
            ++*pairs;
            for (turn = 0; turn < 2; turn++) {
                int32_t const own = turn ? j : i, a = m->name[own], b = m->name[turn ? i : j];
                if (!handover_owns(h, m, own, turn ? i : j)) continue;
                m->listed[a][b] = 1;
                if (old.listed[a][b]) m->mark[a][b] = old.mark[a][b];
                if (++length[own] > longest) longest = length[own];
            }
        }
    return longest;
}

/* Every entry gets bytes of its own, in the list and in the model. */
static void handover_stamp(handover *h, handover_model *m, int step)
{
    int32_t i, j;
    h->driver.stamp(h->driver.state, (uint32_t)step);
    for (i = 0; i < m->n; i++)
        for (j = 0; j < m->n; j++)
            if (m->listed[m->name[i]][m->name[j]])
                m->mark[m->name[i]][m->name[j]] = handover_mark((uint32_t)step, i, j);
}

/* A build of n particles: those beyond m->n are new, as in a call without a remap. */
static void handover_build(handover *h, handover_model *m, uint32_t graph, int32_t n, int step)
{
    int32_t pair[HANDOVER_MOST * (HANDOVER_MOST - 1)];
    int64_t pairs;
    handover_model const old = *m;
    nlist_desc d = handover_desc(h, n, step);
    nlist_result result;
    int32_t i, longest;
    m->n = n;
    m->rows = handover_rows(h, n);
    for (i = old.n; i < n; i++) m->name[i] = m->next++;
    longest = handover_list_pairs(h, m, graph, pair, &pairs);
    result = h->driver.build(h->driver.state, &d, pair, pairs, n);
    if (result == NLIST_ROW_FULL || result == NLIST_LIST_FULL) {
        handover_check_rows(h, &old, step);
        if (h->driver.refuses_pairs && d.layout == NLIST_STATIC && longest > d.width) {
            *m = old;
            return;
        }
        result = h->driver.build(h->driver.state, &d, pair, pairs, n); /* with more memory */
    }
    if (result != NLIST_OK) handover_fail(h, step, nlist_result_text(result));
    handover_check_rows(h, m, step);
    if (h->c.events) handover_check_events(h, &old, m, step);
    handover_stamp(h, m, step);
}

/* Builds that must be refused. */
static void handover_refuse(handover *h, const handover_model *m, int step)
{
    int32_t const star[] = {0, 1, 0, 2, 1, 2}, self[] = {0, 0};
    nlist_desc d = handover_desc(h, m->n, step);
    if (h->driver.refuses_pairs) {
        if (h->driver.build(h->driver.state, &d, self, 1, m->n) != NLIST_BAD_INDEX)
            handover_fail(h, step, "a particle beside itself");
        handover_check_rows(h, m, step);
    }
    if (m->n < 3 || h->c.layout[0] == NLIST_STATIC) return;
    d.layout = NLIST_STATIC;
    d.width = 1;
    if (h->driver.build(h->driver.state, &d, star, 3, m->n) == NLIST_ROW_FULL)
        handover_check_rows(h, m, step);
    else handover_fail(h, step, "two partners in one slot");
}

/* A remap. was: the old ids of the new particles; rows -1: as the list decides. */
static void handover_remap(handover *h, handover_model *m, const int32_t *was, int32_t n,
                           int32_t rows, int step)
{
    int32_t new_id[HANDOVER_MOST], i;
    int32_t const left = m->rows == m->n || m->rows > n ? n : m->rows;
    for (i = 0; i < m->n; i++) new_id[i] = -1;
    for (i = 0; i < n; i++)
        if (was[i] >= 0) new_id[was[i]] = i;
    if (h->driver.remap(h->driver.state, new_id, n, rows) != NLIST_OK)
        handover_fail(h, step, "a remap was refused");
    handover_rename(h, m, was, n, rows < 0 ? left : rows);
    handover_check_rows(h, m, step);
}

/* Permutation number k of n. */
static void handover_permute(int32_t *was, int32_t n, int32_t k)
{
    int32_t i, j;
    for (i = 0; i < n; i++) {
        int32_t const at = k % (n - i), id = was[i + at];
        k /= n - i;
        for (j = i + at; j > i; j--) was[j] = was[j - 1];
        was[i] = id;
    }
}

static int32_t handover_factorial(int32_t n) { return n > 1 ? n * handover_factorial(n - 1) : 1; }

/* Steps from a model of n particles. */
static int32_t handover_steps(const handover *h, int32_t n)
{
    int32_t const inserts = n < HANDOVER_MOST ? n + 1 : 0, ghosts = h->c.ghosts ? n + 1 : 0;
    return (1 << handover_pairs_of(n)) + handover_factorial(n) + 2 * n + inserts + ghosts + 3;
}

/* Step number k: builds of all graphs, with a particle more or less, a refused build, orders,
   deletions, replacements, insertions, ghosts. */
static void handover_step(handover *h, handover_model *m, int32_t k, int step)
{
    int32_t was[HANDOVER_MOST] = {0, 1, 2, 3};
    int32_t const n = m->n, graphs = 1 << handover_pairs_of(n), orders = handover_factorial(n);
    int32_t i;
    if (k < graphs) {
        handover_build(h, m, (uint32_t)k, n, step);
    } else if ((k -= graphs) < 3) {
        if (k == 0) handover_refuse(h, m, step);
        if (k == 1 && n > 0) handover_build(h, m, ~0u, n - 1, step);
        if (k == 2 && n < HANDOVER_MOST) handover_build(h, m, ~0u, n + 1, step);
    } else if ((k -= 3) < orders) {
        handover_permute(was, n, k);
        handover_remap(h, m, was, n, -1, step);
    } else if ((k -= orders) < n) {
        for (i = k; i < n - 1; i++) was[i] = i + 1;
        handover_remap(h, m, was, n - 1, -1, step);
    } else if ((k -= n) < n) {
        was[k] = -1;
        handover_remap(h, m, was, n, -1, step);
    } else if ((k -= n) <= n && n < HANDOVER_MOST) {
        for (i = n; i > k; i--) was[i] = i - 1;
        was[k] = -1;
        handover_remap(h, m, was, n + 1, -1, step);
    } else {
        handover_remap(h, m, was, n, n < HANDOVER_MOST ? k - n - 1 : k, step);
    }
}

/* All sequences of more steps. */
static void handover_walk(handover *h, const handover_model *m, int step)
{
    int32_t k;
    if (step > h->depth) return;
    h->driver.save(h->driver.state, step);
    for (k = 0; k < handover_steps(h, m->n) && h->failures == 0; k++) {
        handover_model next = *m;
        int const graph = m->n == HANDOVER_MOST && k < 1 << handover_pairs_of(m->n);
        if (h->turn++ % (graph ? h->every : h->rare) != 0) continue;
        h->trail[step] = k;
        handover_step(h, &next, k, step);
        h->steps++;
        handover_walk(h, &next, step + 1);
        h->driver.restore(h->driver.state, step);
    }
}

/* All sequences that begin with a build of n particles. */
static void handover_run(handover *h, int32_t n)
{
    int32_t graph;
    for (graph = 0; graph < 1 << handover_pairs_of(n) && h->failures == 0; graph++) {
        handover_model m;
        memset(&m, 0, sizeof m);
        h->trail[0] = graph;
        h->driver.save(h->driver.state, 0);
        handover_build(h, &m, (uint32_t)graph, n, 0);
        h->steps++;
        if (m.n == n) handover_walk(h, &m, 1); /* else the build was refused */
        h->driver.restore(h->driver.state, 0);
    }
}

#endif /* NLIST_HANDOVER_H */
