/* search.h - the search behind nearfield.neighbor_list: pairs with 64-bit ids, row after row.
   SPDX-License-Identifier: MIT OR Unlicense

   A nearfield_search is a question, the memory for its answer, and the count of pairs. Python sets
   the fields, calls nearfield_search_run, allocates arrays of `count` entries, and has them filled
   by nearfield_search_copy. The pairs are those of nlist_search_boxes that are nearer than (<) the
   cutoff. One search belongs to one thread at a time. */

#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h> /* madvise */
#endif

typedef struct nearfield_search {
    /* the question: set by Python before each run */
    const nlist_real *pos;      /* [n] points of 3 numbers, `stride` bytes apart */
    int64_t stride;
    const nlist_box *boxes;     /* [systems] */
    const int32_t *starts;      /* [systems + 1] */
    int32_t systems;
    int32_t half;               /* 1 = each pair once */
    int32_t sorted;             /* 1 = rows ascend by partner, then by shift */
    int32_t self;               /* 1 = each atom is a partner of itself, at distance 0 */
    int32_t wanted;             /* sum of NLIST_WANT_... */
    int32_t nearest;            /* rows keep their so many nearest entries (0: all) */
    nlist_real cutoff;          /* of all pairs, the largest of all with `between` */
    const nlist_real *radii;    /* [n] the cutoff of a pair is the sum of two, or NULL */
    const int32_t *numbers;     /* [n] with `between`: the kind of each atom */
    const int32_t *between;     /* [2 * laws] kinds of atoms, or NULL */
    const nlist_real *laws_cutoff; /* [laws] cutoffs between these kinds; others are not listed */
    int64_t laws;
    int64_t limit;              /* most bytes that the search may take */
    /* the answer */
    int64_t count;
    int64_t bad_id;             /* the first atom (or system) that was refused, else -1 */
    /* private */
    int64_t held;               /* bytes that the list has */
    nlist list;
    nlist_arrays found;
    int64_t *start;             /* [n + 1] where the rows begin in the answer */
    int64_t *begin;             /* [n] where they begin in what was found */
    int64_t room;               /* rows that both have room for */
    int32_t kinds;
    int32_t *kind;              /* [kinds] the distinct numbers of `between`, ascending */
    int32_t *of;                /* [n] which of them an atom is, or -1 */
    nlist_real *table;          /* [kinds * kinds] cutoffs, 0 = none */
} nearfield_search;

#ifdef NEARFIELD_IMPLEMENTATION

NEARFIELD_API nearfield_search *nearfield_search_new(void)
{
    return (nearfield_search *)calloc(1, sizeof(nearfield_search));
}

/* Large blocks in large pages, where the system has them: a search that begins with fresh memory
   would spend a third of its time on faults of small ones. */
static void *nearfield_i_pages(size_t bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    size_t const page = (size_t)2 << 20;
    void *memory;
    if (bytes >= 2 * page) {
        if (posix_memalign(&memory, page, bytes) != 0) return NULL;
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
        return memory;
    }
#endif
    return malloc(bytes);
}

/* The list's memory: no more than the limit, which is what the machine has. A search that needs
   more is refused here, before the machine begins to swap. */
static void *nearfield_i_alloc(size_t bytes, void *user)
{
    nearfield_search *search = (nearfield_search *)user;
    void *memory;
    if (bytes > (size_t)INT64_MAX || (int64_t)bytes > search->limit - search->held) return NULL;
    memory = nearfield_i_pages(bytes);
    if (memory) search->held += (int64_t)bytes;
    return memory;
}

static void nearfield_i_free(void *memory, size_t bytes, void *user)
{
    ((nearfield_search *)user)->held -= (int64_t)bytes;
    free(memory);
}

/* Frees the table of kinds, which is of one run. */
static void nearfield_i_forget(nearfield_search *search)
{
    free(search->kind);
    free(search->of);
    free(search->table);
    search->kind = search->of = NULL;
    search->table = NULL;
    search->kinds = 0;
}

NEARFIELD_API void nearfield_search_free(nearfield_search *search)
{
    if (!search) return;
    nearfield_i_forget(search);
    nlist_free(&search->list);
    free(search->start);
    free(search->begin);
    free(search);
}

/* ---- cutoffs between kinds ---- */

static int nearfield_i_ascend(const void *a, const void *b)
{
    int32_t const x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The place of a number among the kinds, or -1. */
static int32_t nearfield_i_kind(const nearfield_search *search, int32_t number)
{
    int32_t low = 0, high = search->kinds;
    while (low < high) {
        int32_t const middle = low + (high - low) / 2;
        if (search->kind[middle] < number) low = middle + 1;
        else high = middle;
    }
    return low < search->kinds && search->kind[low] == number ? low : -1;
}

/* The distinct numbers of `between`, ascending. */
static void nearfield_i_kinds(nearfield_search *search)
{
    int64_t k, count = 2 * search->laws;
    memcpy(search->kind, search->between, sizeof(int32_t) * (size_t)count);
    qsort(search->kind, (size_t)count, sizeof(int32_t), nearfield_i_ascend);
    search->kinds = 0;
    for (k = 0; k < count; k++)
        if (k == 0 || search->kind[k] != search->kind[k - 1])
            search->kind[search->kinds++] = search->kind[k];
}

/* Cutoffs by kind and kind; of laws that name the same two kinds the last one holds. */
static nlist_result nearfield_i_tabulate(nearfield_search *search, int32_t n)
{
    int64_t k;
    search->kind = (int32_t *)malloc(sizeof(int32_t) * (size_t)(2 * search->laws + 1));
    search->of = (int32_t *)malloc(sizeof(int32_t) * ((size_t)n + 1));
    if (!search->kind || !search->of) return NLIST_OUT_OF_MEMORY;
    nearfield_i_kinds(search);
    search->table = (nlist_real *)calloc((size_t)search->kinds * (size_t)search->kinds + 1,
                                         sizeof(nlist_real));
    if (!search->table) return NLIST_OUT_OF_MEMORY;
    for (k = 0; k < search->laws; k++) {
        int32_t const a = nearfield_i_kind(search, search->between[2 * k]);
        int32_t const b = nearfield_i_kind(search, search->between[2 * k + 1]);
        search->table[a * search->kinds + b] = search->laws_cutoff[k];
        search->table[b * search->kinds + a] = search->laws_cutoff[k];
    }
    for (k = 0; k < n; k++) search->of[k] = nearfield_i_kind(search, search->numbers[k]);
    return NLIST_OK;
}

/* The cutoff of a pair; 0: it is not listed. */
static nlist_real nearfield_i_cutoff(const nearfield_search *search, int32_t i, int32_t j)
{
    if (search->radii) return search->radii[i] + search->radii[j];
    if (!search->between) return search->cutoff;
    if (search->of[i] < 0 || search->of[j] < 0) return 0;
    return search->table[search->of[i] * search->kinds + search->of[j]];
}

/* ---- the search ---- */

/* The largest number below x. What is no further than it is nearer than x. */
static nlist_real nearfield_i_below(nlist_real x)
{
    return sizeof x == sizeof(float) ? (nlist_real)nextafterf((float)x, 0)
                                     : (nlist_real)nextafter((double)x, 0);
}

/* Moves entry `from` to place `to` of what was found. */
static void nearfield_i_move(const nlist_arrays *found, int64_t from, int64_t to)
{
    found->i[to] = found->i[from];
    found->j[to] = found->j[from];
    found->distance[to] = found->distance[from];
    if (found->shift) memmove(found->shift + 3 * to, found->shift + 3 * from, 3 * sizeof(int32_t));
    if (found->offset)
        memmove(found->offset + 3 * to, found->offset + 3 * from, 3 * sizeof(nlist_real));
}

/* Keeps the entries that are nearer than the cutoff of their pair. */
static void nearfield_i_select(nearfield_search *search)
{
    nlist_arrays *found = &search->found;
    int64_t k, kept = 0;
    for (k = 0; k < found->count; k++)
        if (found->distance[k] < nearfield_i_cutoff(search, found->i[k], found->j[k]))
            nearfield_i_move(found, k, kept++);
    found->count = kept;
}

/* Whether atom i is listed as a partner of itself. */
static int nearfield_i_own(const nearfield_search *search, int32_t i)
{
    return search->self && nearfield_i_cutoff(search, i, i) > 0;
}

/* Room for n rows; 0: there is none. */
static int nearfield_i_take_rows(nearfield_search *search, int32_t n)
{
    if (search->start && search->room >= n) return 1;
    free(search->start);
    free(search->begin);
    search->start = (int64_t *)malloc(sizeof(int64_t) * ((size_t)n + 1));
    search->begin = (int64_t *)malloc(sizeof(int64_t) * ((size_t)n + 1));
    search->room = search->start && search->begin ? n : -1;
    return search->room == n;
}

/* Where each row begins in the answer, and in what was found. */
static nlist_result nearfield_i_place_rows(nearfield_search *search, int32_t n)
{
    const nlist_arrays *found = &search->found;
    int64_t k, sum = 0;
    if (!nearfield_i_take_rows(search, n)) return NLIST_OUT_OF_MEMORY;
    for (k = 0; k < n; k++) search->start[k] = nearfield_i_own(search, (int32_t)k);
    for (k = 0; k < found->count;) {
        int32_t const row = found->i[k];
        search->begin[row] = k;
        while (k < found->count && found->i[k] == row) k++;
        search->start[row] += k - search->begin[row];
    }
    for (k = 0; k < n; k++) {
        int64_t const length = search->start[k];
        search->start[k] = sum;
        sum += length;
    }
    search->start[n] = sum;
    search->count = sum;
    return NLIST_OK;
}

static nlist_result nearfield_i_find(nearfield_search *search)
{
    int const selects = search->radii != NULL || search->between != NULL;
    nlist_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(&search->found, 0, sizeof search->found);
    desc.radius = search->radii ? 0 : selects ? search->cutoff : nearfield_i_below(search->cutoff);
    desc.radii = search->radii;
    desc.half = search->half;
    desc.sorted = search->sorted;
    desc.nearest = search->nearest;
    desc.allocator.alloc = nearfield_i_alloc;
    desc.allocator.free = nearfield_i_free;
    desc.allocator.user = search;
    search->found.wanted = search->wanted | NLIST_WANT_I | NLIST_WANT_J;
    if (selects) search->found.wanted |= NLIST_WANT_DISTANCE;
    if (search->self && search->sorted) search->found.wanted |= NLIST_WANT_SHIFT;
    return nlist_search_boxes(&search->list, &desc, search->boxes, search->starts, search->systems,
                              search->pos, (size_t)search->stride, &search->found);
}

/* Finds the pairs: a code of nlist.h. Then `count` is how many there are. */
NEARFIELD_API nlist_result nearfield_search_run(nearfield_search *search)
{
    int32_t const n = search->starts[search->systems];
    nlist_result result = NLIST_OK;
    search->count = 0;
    search->bad_id = -1;
    if (search->between) result = nearfield_i_tabulate(search, n);
    if (result == NLIST_OK) {
        result = nearfield_i_find(search);
        search->bad_id = search->list.bad_id;
    }
    if (result == NLIST_OK && (search->radii || search->between)) nearfield_i_select(search);
    if (result == NLIST_OK) result = nearfield_i_place_rows(search, n);
    return result;
}

/* ---- the answer ---- */

/* The caller's arrays; those that are NULL are not filled. */
typedef struct nearfield_answer {
    int64_t *i, *j;
    int32_t *shift;
    nlist_real *distance, *offset;
} nearfield_answer;

/* Entry `at`: the atom and itself. */
static void nearfield_i_put_own(const nearfield_answer *to, int32_t i, int64_t at)
{
    int axis;
    if (to->i) to->i[at] = i;
    if (to->j) to->j[at] = i;
    if (to->distance) to->distance[at] = 0;
    for (axis = 0; axis < 3; axis++) {
        if (to->shift) to->shift[3 * at + axis] = 0;
        if (to->offset) to->offset[3 * at + axis] = 0;
    }
}

/* Entries first .. first + count - 1 of what was found, of row i, become the entries from `at`. */
static void nearfield_i_put(const nlist_arrays *found, const nearfield_answer *to, int64_t first,
                            int64_t count, int64_t at, int32_t i)
{
    size_t const reals = sizeof(nlist_real) * (size_t)count;
    int64_t k;
    if (count == 0) return;
    if (to->i) for (k = 0; k < count; k++) to->i[at + k] = i;
    if (to->j) for (k = 0; k < count; k++) to->j[at + k] = found->j[first + k];
    if (to->shift)
        memcpy(to->shift + 3 * at, found->shift + 3 * first, 3 * sizeof(int32_t) * (size_t)count);
    if (to->distance) memcpy(to->distance + at, found->distance + first, reals);
    if (to->offset) memcpy(to->offset + 3 * at, found->offset + 3 * first, 3 * reals);
}

/* How many entries of a sorted row come before the atom itself. */
static int64_t nearfield_i_before(const nlist_arrays *found, int64_t first, int64_t count,
                                  int32_t i)
{
    int64_t k;
    for (k = 0; k < count; k++) {
        const int32_t *shift = found->shift + 3 * (first + k);
        int32_t const sign = shift[0] ? shift[0] : shift[1] ? shift[1] : shift[2];
        if (found->j[first + k] > i || (found->j[first + k] == i && sign > 0)) break;
    }
    return k;
}

/* Row i, with the atom itself where it belongs. */
static void nearfield_i_put_row(const nearfield_search *search, const nearfield_answer *to,
                                int32_t i)
{
    const nlist_arrays *found = &search->found;
    int64_t const at = search->start[i], first = search->begin[i];
    int const own = nearfield_i_own(search, i);
    int64_t const count = search->start[i + 1] - at - own;
    int64_t const before = own && search->sorted ? nearfield_i_before(found, first, count, i) : 0;
    if (own) {
        nearfield_i_put(found, to, first, before, at, i);
        nearfield_i_put_own(to, i, at + before);
    }
    nearfield_i_put(found, to, first + before, count - before, at + before + own, i);
}

/* Fills arrays of `count` entries (shift, offset: 3 * count). */
NEARFIELD_API void nearfield_search_copy(nearfield_search *search, int64_t *i, int64_t *j,
                                         int32_t *shift, nlist_real *distance, nlist_real *offset)
{
    int32_t const n = search->starts[search->systems];
    nearfield_answer to;
    int32_t row;
    to.i = i, to.j = j, to.shift = shift, to.distance = distance, to.offset = offset;
    for (row = 0; row < n; row++)
        if (search->start[row + 1] > search->start[row]) nearfield_i_put_row(search, &to, row);
}

/* Copies where the rows begin: n + 1 numbers. */
NEARFIELD_API void nearfield_search_rows(const nearfield_search *search, int64_t *start)
{
    memcpy(start, search->start,
           sizeof(int64_t) * ((size_t)search->starts[search->systems] + 1));
}

/* Ends a run: frees what it does not keep for the next, and everything beyond `bytes`. */
NEARFIELD_API void nearfield_search_end(nearfield_search *search, int64_t bytes)
{
    nearfield_i_forget(search);
    if (search->held + search->room * 2 * (int64_t)sizeof(int64_t) <= bytes) return;
    nlist_free(&search->list);
    memset(&search->list, 0, sizeof search->list);
    free(search->start);
    free(search->begin);
    search->start = search->begin = NULL;
    search->room = 0;
}

#endif
