/* search.h - the search behind nearfield.neighbor_list: pairs with 64-bit ids, row after row.
   SPDX-License-Identifier: MIT OR Unlicense

   A nearfield_search is a question, the memory for its answer, and the count of pairs. Python sets
   the fields, calls nearfield_search_run, allocates arrays of `count` entries, and has them filled
   by nearfield_search_copy. The pairs are those of nlist_search_boxes that are nearer than (<) the
   cutoff. One search belongs to one thread at a time.

   The two calls are the two steps of nlist_search_boxes (more/nlist_boxes.h, >>boxes-serial): rows
   are found as numbers of candidates, 4 bytes a pair, then every entry is written once, to its
   place in the arrays of Python. Where cells are slow, trees.h finds the same pairs. */

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
    int32_t nearest;            /* rows keep their so many nearest entries, in order (0: all) */
    int32_t most;               /* with `sorted`: if a row is longer, all are as with `nearest` (0:
                                   any length) */
    int32_t lowest;             /* rows keep their so many entries of the lowest ids (0: all) */
    int32_t way;                /* 0 = chosen, 1 = cells, 2 = trees */
    const nlist_real *queries;  /* [m] points of 3 numbers whose rows are wanted; NULL: those of all
                                   points */
    const int32_t *query_starts; /* [systems + 1] with queries */
    nlist_real cutoff;          /* of all pairs, the largest of all with `between`; may be infinite
                                   with `nearest` */
    const nlist_real *radii;    /* [n] the cutoff of a pair is the sum of two, or NULL */
    const int32_t *numbers;     /* [n] with `between`: the kind of each atom */
    const int32_t *between;     /* [2 * laws] kinds of atoms, or NULL */
    const nlist_real *laws_cutoff; /* [laws] cutoffs between these kinds; others are not listed */
    int64_t laws;
    int64_t limit;              /* most bytes that the search may take */
    nlist_parallel parallel;    /* as desc.parallel: nearfield_run of threads.h, or serial */
    /* the answer */
    int64_t count;
    int64_t bad_id;             /* the first atom (or system) that was refused, else -1 */
    int32_t by;                 /* what searched: 1 = cells, 2 = trees */
    int64_t tests;              /* pairs that the trees' search has tested */
    /* private */
    int64_t held;               /* bytes that the list has */
    void *work;                 /* a nearfield_i_work */
    int32_t kinds;
    int32_t *kind;              /* [kinds] the distinct numbers of `between`, ascending */
    int32_t *of_kind;           /* [kinds] how many atoms are of each */
    int32_t *of;                /* [n] which of them an atom is, or -1 */
    nlist_real *table;          /* [kinds * kinds] cutoffs, 0 = none */
} nearfield_search;

#ifdef NEARFIELD_IMPLEMENTATION

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
    free(search->of_kind);
    free(search->of);
    free(search->table);
    search->kind = search->of = search->of_kind = NULL;
    search->table = NULL;
    search->kinds = 0;
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
    search->of_kind = (int32_t *)calloc((size_t)(2 * search->laws + 1), sizeof(int32_t));
    if (!search->kind || !search->of || !search->of_kind) return NLIST_OUT_OF_MEMORY;
    nearfield_i_kinds(search);
    search->table = (nlist_real *)calloc((size_t)search->kinds * (size_t)search->kinds + 1,
                                         sizeof(nlist_real));
    if (!search->table) return NLIST_OUT_OF_MEMORY;
    for (k = 0; k < search->laws; k++) {
        size_t const a = (size_t)nearfield_i_kind(search, search->between[2 * k]);
        size_t const b = (size_t)nearfield_i_kind(search, search->between[2 * k + 1]);
        search->table[a * (size_t)search->kinds + b] = search->laws_cutoff[k];
        search->table[b * (size_t)search->kinds + a] = search->laws_cutoff[k];
    }
    for (k = 0; k < n; k++) {
        search->of[k] = nearfield_i_kind(search, search->numbers[k]);
        if (search->of[k] >= 0) search->of_kind[search->of[k]]++;
    }
    return NLIST_OK;
}

/* The cutoff of a pair; 0: it is not listed. */
static nlist_real nearfield_i_cutoff(const nearfield_search *search, int32_t i, int32_t j)
{
    if (search->radii) return search->radii[i] + search->radii[j];
    if (!search->between) return search->cutoff;
    if (search->of[i] < 0 || search->of[j] < 0) return 0;
    return search->table[(size_t)search->of[i] * (size_t)search->kinds + (size_t)search->of[j]];
}

/* ---- the search ---- */

/* From here on a cutoff is none. */
#define NEARFIELD_I_FAR (sizeof(nlist_real) == sizeof(float) ? (nlist_real)1e38 : (nlist_real)1e307)

/* The largest number below x. What is no further than it is nearer than x. */
static nlist_real nearfield_i_below(nlist_real x)
{
    return sizeof x == sizeof(float) ? (nlist_real)nextafterf((float)x, 0)
                                     : (nlist_real)nextafter((double)x, 0);
}

#include "trees.h"

/* The search in progress. */
typedef struct nearfield_i_work {
    nlist list;                 /* holds the memory */
    nlist_i_boxes source;
    nlist_i_finder finder;
    nlist_i_search rows;
    nearfield_i_trees trees;
} nearfield_i_work;

static nearfield_i_work *nearfield_i_work_of(const nearfield_search *search)
{
    return (nearfield_i_work *)search->work;
}

static nearfield_i_trees *nearfield_i_trees_of(nearfield_search *search)
{
    return &nearfield_i_work_of(search)->trees;
}

NEARFIELD_API nearfield_search *nearfield_search_new(void)
{
    nearfield_search *search = (nearfield_search *)calloc(1, sizeof(nearfield_search));
    if (!search) return NULL;
    search->work = calloc(1, sizeof(nearfield_i_work));
    if (search->work) return search;
    free(search);
    return NULL;
}

NEARFIELD_API void nearfield_search_free(nearfield_search *search)
{
    if (!search) return;
    nearfield_i_forget(search);
    nearfield_i_free_trees(search);
    nlist_free(&nearfield_i_work_of(search)->list);
    free(search->work);
    free(search);
}

/* 1 if the pair is nearer than its cutoff. */
static int nearfield_i_keeps(const void *user, int32_t i, int32_t j, nlist_real distance)
{
    return distance < nearfield_i_cutoff((const nearfield_search *)user, i, j);
}

static nlist_desc nearfield_i_desc(nearfield_search *search)
{
    int const selects = search->radii != NULL || search->between != NULL;
    nlist_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.radius = search->radii ? 0 : selects ? search->cutoff : nearfield_i_below(search->cutoff);
    desc.radii = search->radii;
    desc.half = search->half;
    desc.sorted = search->sorted;
    desc.nearest = search->nearest;
    desc.parallel = search->parallel;
    desc.allocator.alloc = nearfield_i_alloc;
    desc.allocator.free = nearfield_i_free;
    desc.allocator.user = search;
    return desc;
}

/* Finds the rows in cells, after the checks. */
static nlist_result nearfield_i_find_in_cells(nearfield_search *search)
{
    nearfield_i_work *work = nearfield_i_work_of(search);
    nlist_result result;
    nlist_i_begin_search(&work->rows, &work->finder);
    work->rows.ordered = 1;
    work->rows.self = search->self;
    if (search->radii || search->between) work->rows.keeps = nearfield_i_keeps;
    work->rows.user = search;
    result = nlist_i_find_rows(&work->rows);
    search->count = work->rows.used;
    return result;
}

/* 1 if rows of at most search->most entries were found. `limit` is what the search may take: it had
   room for so many only. */
static int nearfield_i_within_most(const nearfield_search *search, nlist_result result)
{
    const nlist_i_finder *finder = &nearfield_i_work_of(search)->finder;
    int32_t i;
    if (result != NLIST_OK) return result != NLIST_OUT_OF_MEMORY;
    for (i = 0; i < finder->n; i++) if (finder->length[i] > search->most) return 0;
    return 1;
}

/* 1 if one of 16 rows is longer than search->most. Images are not looked at: what is found is
   enough. */
static int nearfield_i_has_long_row(const nearfield_search *search, const nlist_desc *desc)
{
    nlist_real const none[3] = {0, 0, 0}, limit = nlist_i_limit(desc, 0, 0);
    int32_t const n = search->starts[search->systems];
    int32_t k, j, s = 0;
    for (k = 0; k < 16 && n > 0; k++) {
        int32_t const i = (int32_t)((int64_t)k * n / 16);
        int32_t found = -1; /* without the point itself */
        nlist_real p[3], q[3], d[3];
        while (i >= search->starts[s + 1]) s++;
        nearfield_i_load(search, i, p);
        for (j = search->starts[s]; j < search->starts[s + 1] && found <= search->most; j++) {
            nearfield_i_load(search, j, q);
            found += nlist_i_offset(p, q, none, d) <= limit;
        }
        if (found > search->most) return 1;
    }
    return 0;
}

/* In cells, with memory for rows of search->most entries each. Returns 0 where one is longer. */
static int nearfield_i_find_most(nearfield_search *search, nlist_result *result)
{
    int64_t const limit = search->limit;
    int64_t const n = search->starts[search->systems];
    int64_t const most = search->held + (1 << 20) + n * (400 + 16 * (int64_t)search->most);
    if (most < limit) search->limit = most;
    *result = nearfield_i_find_in_cells(search);
    search->limit = limit;
    return nearfield_i_within_most(search, *result);
}

static nlist_result nearfield_i_find(nearfield_search *search)
{
    nearfield_i_work *work = nearfield_i_work_of(search);
    nlist_desc const desc = nearfield_i_desc(search);
    nlist_desc checked = desc;
    nlist_result result;
    int const trees = nearfield_i_chooses_trees(search, &desc);
    if (trees) checked.nearest = 0;
    if (trees && !(search->cutoff < NEARFIELD_I_FAR)) checked.radius = 1;
    work->source = nlist_i_boxes_of(search->boxes, search->starts, search->systems);
    work->finder = nlist_i_finder_of_boxes(&work->list, &work->source);
    result = nlist_i_begin_arrays(&work->finder, &checked, search->pos, (size_t)search->stride);
    if (result != NLIST_OK) return result;
    search->by = trees ? 2 : 1;
    if (!trees && search->most == 0) return nearfield_i_find_in_cells(search);
    if (!trees && !nearfield_i_has_long_row(search, &desc) &&
        nearfield_i_find_most(search, &result))
        return result;
    search->by = 2;
    return nearfield_i_find_in_trees(search, &desc);
}

/* Finds the pairs: a code of nlist.h. Then `count` is how many there are. */
NEARFIELD_API nlist_result nearfield_search_run(nearfield_search *search)
{
    nlist_result result = NLIST_OK;
    search->count = 0;
    search->bad_id = -1;
    search->by = 0;
    search->tests = 0;
    if (search->between) result = nearfield_i_tabulate(search, search->starts[search->systems]);
    if (result != NLIST_OK) return result;
    result = nearfield_i_find(search);
    search->bad_id = nearfield_i_work_of(search)->list.bad_id;
    return result;
}

/* ---- the answer ---- */

/* Fills arrays of `count` entries (shift, offset: 3 * count), after a run that returned 0 and with
   the same pos, boxes and starts; those that are NULL are not wanted. */
NEARFIELD_API void nearfield_search_copy(nearfield_search *search, int64_t *i, int64_t *j,
                                         int32_t *shift, nlist_real *distance, nlist_real *offset)
{
    nlist_i_search *rows = &nearfield_i_work_of(search)->rows;
    if (search->by == 2) {
        nearfield_i_copy_rows(search, i, j, shift, distance, offset);
        return;
    }
    rows->long_i = i;
    rows->long_j = j;
    rows->out.shift = shift;
    rows->out.distance = distance;
    rows->out.offset = offset;
    (void)nlist_i_write_rows(rows);
}

/* Copies where the rows begin: a number for each, and the count. */
NEARFIELD_API void nearfield_search_rows(const nearfield_search *search, int64_t *start)
{
    nearfield_i_work *work = nearfield_i_work_of(search);
    int32_t const rows = nearfield_i_rows(search);
    const int32_t *length = nearfield_i_ints(&work->trees, NEARFIELD_I_LENGTHS);
    int64_t at = 0;
    int32_t i;
    for (i = 0; i < rows; i++) {
        start[i] = at;
        at += search->by == 2 ? length[i] : work->finder.length[i];
    }
    start[rows] = search->count;
}

/* Those of `count` pairs that are nearer than the cutoff now, in the same order, with their
   distances and vectors (NULL: not wanted). Returns how many; the arrays have room for all.
   -1: the box is none. */
NEARFIELD_API int64_t nearfield_again(const nlist_real *pos, int64_t stride, const nlist_box *box,
                                      nlist_real cutoff, const int64_t *i, const int64_t *j,
                                      const int32_t *shift, int64_t count, int64_t *to_i,
                                      int64_t *to_j, int32_t *to_shift, nlist_real *distance,
                                      nlist_real *offset)
{
    nlist_i_frame frame;
    int64_t e, kept = 0;
    memset(&frame, 0, sizeof frame);
    if (!nlist_i_frame_of(&frame, box, 3)) return -1;
    for (e = 0; e < count; e++) {
        nlist_real p[3], q[3], t[3], d[3], length;
        memcpy(p, (const char *)pos + stride * i[e], sizeof p);
        memcpy(q, (const char *)pos + stride * j[e], sizeof q);
        nlist_i_translation(&frame, shift + 3 * e, t);
        length = nlist_i_root_real(nlist_i_offset(p, q, t, d));
        if (!(length < cutoff)) continue;
        to_i[kept] = i[e];
        to_j[kept] = j[e];
        memcpy(to_shift + 3 * kept, shift + 3 * e, 3 * sizeof *shift);
        if (distance) distance[kept] = length;
        if (offset) memcpy(offset + 3 * kept, d, sizeof d);
        kept++;
    }
    return kept;
}

/* Ends a run: frees what it does not keep for the next, and everything beyond `bytes`. */
NEARFIELD_API void nearfield_search_end(nearfield_search *search, int64_t bytes)
{
    nearfield_i_work *work = nearfield_i_work_of(search);
    nearfield_i_forget(search);
    if (search->held <= bytes) return;
    nearfield_i_free_trees(search);
    nlist_free(&work->list);
    memset(&work->list, 0, sizeof work->list);
}

#endif
