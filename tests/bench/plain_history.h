/* plain_history.h - history in place: the list of the source (004, section 5.5), as a contrast to
   nlist.h, which writes a new list beside the old one and copies what contacts keep.

   One array of contacts (a, b), a < b, sorted by a, with what each keeps beside it:

       1. flag    no contact is valid,
       2. find    each pair that the search finds is looked up among the contacts of a: valid,
       3. append  or it is new, and goes to the end of the array,
       4. drop    contacts that are not valid get an a behind all others,
       5. sort    by a, with all that contacts keep; those that were dropped are last, and are cut.

   The sort is a counting sort: the source's is a radix sort, for the GPU.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PLAIN_HISTORY_H
#define PLAIN_HISTORY_H

#include "bench.h"

typedef struct plain_kept { float value[4]; } plain_kept;

typedef struct plain_contacts {
    int32_t *a, *b;
    plain_kept *kept;
} plain_contacts;

typedef struct plain_history {
    int32_t n;
    int32_t *start;             /* [n + 2] contacts of a: start[a] .. start[a + 1] - 1, sorted */
    plain_contacts now, sorted; /* the array, and room to sort it */
    unsigned char *valid;
    int64_t count, capacity;
} plain_history;

BENCH_FN plain_contacts plain_contacts_new(int64_t capacity)
{
    size_t const room = (size_t)capacity;
    plain_contacts c;
    c.a = (int32_t *)bench_alloc(room * sizeof *c.a);
    c.b = (int32_t *)bench_alloc(room * sizeof *c.b);
    c.kept = (plain_kept *)bench_alloc(room * sizeof *c.kept);
    return c;
}

BENCH_FN void plain_contacts_free(plain_contacts *c)
{
    free(c->a);
    free(c->b);
    free(c->kept);
}

/* Room for the contacts of a step and those that end in it. */
BENCH_FN plain_history plain_history_new(int32_t n, int64_t capacity)
{
    plain_history h;
    h.n = n;
    h.count = 0;
    h.capacity = capacity;
    h.start = (int32_t *)bench_alloc(((size_t)n + 2) * sizeof *h.start);
    memset(h.start, 0, ((size_t)n + 2) * sizeof *h.start);
    h.now = plain_contacts_new(capacity);
    h.sorted = plain_contacts_new(capacity);
    h.valid = (unsigned char *)bench_alloc((size_t)capacity);
    return h;
}

BENCH_FN void plain_history_free(plain_history *h)
{
    free(h->start);
    free(h->valid);
    plain_contacts_free(&h->now);
    plain_contacts_free(&h->sorted);
}

BENCH_FN void plain_history_flag(plain_history *h) { memset(h->valid, 0, (size_t)h->count); }

/* find, append: for each pair within the radius, once. Not zero: the array is full. */
BENCH_FN int plain_history_found(void *user, int32_t i, int32_t j)
{
    plain_history *h = (plain_history *)user;
    int32_t const a = i < j ? i : j, b = i < j ? j : i;
    int32_t k = h->start[a];
    while (k < h->start[a + 1] && h->now.b[k] != b) k++;
    if (k < h->start[a + 1]) {
        h->valid[k] = 1;
        return 0;
    }
    if (h->count == h->capacity) return 1;
    h->now.a[h->count] = a;
    h->now.b[h->count] = b;
    h->valid[h->count] = 1;
    memset(&h->now.kept[h->count++], 0, sizeof *h->now.kept);
    return 0;
}

/* drop, sort; `start` is counted anew. */
BENCH_FN void plain_history_sort(plain_history *h)
{
    plain_contacts const unsorted = h->now;
    int32_t *next = h->start + 1; /* first where a row begins, then where it ends */
    int64_t k;
    int32_t a;
    memset(h->start, 0, ((size_t)h->n + 2) * sizeof *h->start);
    for (k = 0; k < h->count; k++) {
        if (!h->valid[k]) unsorted.a[k] = h->n;
        else h->start[unsorted.a[k] + 2]++;
    }
    for (a = 1; a <= h->n; a++) h->start[a + 1] += h->start[a];
    for (k = 0; k < h->count; k++) {
        int32_t to;
        if (unsorted.a[k] == h->n) continue;
        to = next[unsorted.a[k]]++;
        h->sorted.a[to] = unsorted.a[k];
        h->sorted.b[to] = unsorted.b[k];
        h->sorted.kept[to] = unsorted.kept[k];
    }
    h->now = h->sorted;
    h->sorted = unsorted;
    h->count = h->start[h->n];
}

#endif /* PLAIN_HISTORY_H */
