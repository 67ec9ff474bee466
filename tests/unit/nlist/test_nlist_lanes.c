/* test_nlist_lanes.c - instructions chosen at run time: searches in boxes by AVX2 and by plain ones
   give the same arrays, and those of brute force; so does the search behind Python's lists.
   SPDX-License-Identifier: MIT OR Unlicense */

#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* search.h: madvise */
#endif

static int asked, answer; /* by the header, and to it */
#define NLIST_I_HAS_AVX2() (asked++, answer)

#define NLIST_STATIC
#define NLIST_IMPLEMENTATION
#define NLIST_WITH_BOXES
#include "nlist.h"
#define LBVH_STATIC
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NEARFIELD_API static
#define NEARFIELD_IMPLEMENTATION
#include "packaging/python/library/search.h"
#define TESTED nlist
#define SHARE 1
#include "../../common/testing.h"
#include "../../common/nlist_boxes_oracle.h"

#ifdef NLIST_I_AVX2
#define WIDE_HERE (__builtin_cpu_supports("avx2") != 0)
#else
#define WIDE_HERE 0
#endif

enum { MOST = 400 };

static boxes_system now;
static nlist_desc desc;
static real radii[MOST];
static uint32_t masks[MOST];

static void describe_now(void)
{
    print_error("dim %d n %d radius %g periodic %d half %d sorted %d nearest %d rows %d radii %d "
                "masks %d\n", now.dim, (int)now.n, (double)now.radius, now.box.periodic[0],
                desc.half, desc.sorted, (int)desc.nearest, (int)desc.rows, desc.radii != NULL,
                desc.masks != NULL);
}

/* Arrays of exactly `count` entries: what writes beyond them is seen by the sanitizer. */
static nlist_arrays take_arrays(int64_t count)
{
    nlist_arrays a;
    memset(&a, 0, sizeof a);
    a.capacity = count;
    a.i = NEW(int32_t, count);
    a.j = NEW(int32_t, count);
    a.shift = NEW(int32_t, 3 * count);
    a.distance = NEW(real, count);
    a.offset = NEW(real, 3 * count);
    return a;
}

static void drop_arrays(nlist_arrays *a)
{
    free(a->i);
    free(a->j);
    free(a->shift);
    free(a->distance);
    free(a->offset);
}

/* Plain into memory of the list, wide into the caller's arrays: the same entries. */
static void check_search(int lanes)
{
    nlist plain_list = {0}, wide_list = {0};
    nlist_arrays plain, wide;
    size_t count;
    memset(&plain, 0, sizeof plain);
    plain.wanted = 31;
    answer = 0;
    CHECK_RESULT(nlist_search_box(&plain_list, &desc, &now.box, now.pos, 0, now.n, &plain),
                 NLIST_OK);
    wide = take_arrays(plain.count);
    count = (size_t)plain.count;
    answer = lanes;
    asked = 0;
    CHECK_RESULT(nlist_search_box(&wide_list, &desc, &now.box, now.pos, 0, now.n, &wide),
                 NLIST_OK);
    CHECK(wide.count == plain.count && wide.rows_cut == plain.rows_cut);
    CHECK(!lanes || count == 0 || asked > 0);
    CHECK(count == 0 || (same(plain.i, wide.i, count * sizeof *wide.i) &&
                         same(plain.j, wide.j, count * sizeof *wide.j) &&
                         same(plain.shift, wide.shift, 3 * count * sizeof *wide.shift) &&
                         same(plain.distance, wide.distance, count * sizeof *wide.distance) &&
                         same(plain.offset, wide.offset, 3 * count * sizeof *wide.offset)));
    drop_arrays(&wide);
    nlist_free(&plain_list);
    nlist_free(&wide_list);
}

static void describe_turn(int turn)
{
    memset(&desc, 0, sizeof desc);
    desc.dim = now.dim;
    desc.radius = now.radius;
    desc.half = turn % 3 == 0;
    desc.sorted = turn % 4 == 1;
    desc.nearest = turn % 4 == 2 && !desc.half ? 1 + turn % 9 : 0;
    desc.rows = turn % 5 == 2 ? now.n / 2 : 0;
    desc.radii = turn % 7 == 3 ? radii : NULL;
    desc.masks = turn % 7 == 5 ? masks : NULL;
}

static void test_same_entries(void **state)
{
    static const int32_t sizes[] = {40, 1, 7, 130, 3, MOST};
    int const lanes = WIDE_HERE, turns = small_run() ? 33 : 220;
    int turn, k;
    (void)state;
    describe = describe_now;
    for (k = 0; k < MOST; k++) {
        radii[k] = (real)(0.1 * (double)wl_u(&dice));
        masks[k] = 1u << (k % 3) | 1u << (k % 5);
    }
    for (turn = 0; turn < turns; turn++) {
        int const kind = turn % BOXES_KINDS;
        boxes_make(&now, kind, 2 + (turn % 13 > 2), turn % 6 ? 7 : turn % 8,
                   sizes[turn / 2 % COUNT_OF(sizes)], &dice);
        if (now.n > 100) now.radius = (real)0.4;
        describe_turn(turn);
        check_search(lanes);
        boxes_forget(&now);
    }
}

/* ---- the search behind Python's lists ---- */

/* Brute force, with the particles themselves where these are asked for; in Python's order. */
static boxes_truth wanted_by_python(int self)
{
    /* nearer than the cutoff */
    real const reach = sizeof(real) == sizeof(float) ? (real)nextafterf((float)now.radius, 0)
                                                     : (real)nextafter((double)now.radius, 0);
    boxes_truth want = boxes_brute(&now, reach);
    int32_t k;
    if (desc.half) boxes_halve(&want);
    for (k = 0; k < now.n && self; k++) {
        boxes_entry own;
        memset(&own, 0, sizeof own);
        own.i = own.j = k;
        boxes_add(&want, &own);
    }
    boxes_sort(&want);
    return want;
}

/* The entries of an answer: 64-bit ids, as Python has them, and where the rows begin. */
static void check_answer(nearfield_search *search, const boxes_truth *want)
{
    nlist_arrays got = take_arrays(search->count);
    int64_t *i = NEW(int64_t, search->count), *j = NEW(int64_t, search->count),
            *start = NEW(int64_t, now.n + 1), k;
    boxes_truth found;
    nearfield_search_rows(search, start);
    nearfield_search_copy(search, i, j, got.shift, got.distance, got.offset);
    got.count = search->count;
    for (k = 0; k < got.count; k++) {
        got.i[k] = (int32_t)i[k];
        got.j[k] = (int32_t)j[k];
        CHECK(start[i[k]] <= k && k < start[i[k] + 1]);
    }
    found = boxes_of_arrays(&got);
    for (k = 1; k < found.count && search->sorted; k++)
        CHECK(boxes_order(&found.entry[k - 1], &found.entry[k]) < 0);
    boxes_sort(&found);
    CHECK_FINE(boxes_differ(&found, want, 1));
    free(found.entry);
    CHECK(start[0] == 0 && start[now.n] == search->count);
    free(i);
    free(j);
    free(start);
    drop_arrays(&got);
}

static void test_search_of_python(void **state)
{
    int const turns = small_run() ? 22 : 66;
    nearfield_search *search = nearfield_search_new();
    int turn;
    (void)state;
    CHECK(search != NULL);
    describe = describe_now;
    search->limit = INT64_MAX;
    for (turn = 0; turn < turns; turn++) {
        int32_t const self = turn % 5 > 2;
        int32_t starts[2] = {0, 0};
        boxes_truth want;
        boxes_make(&now, turn % BOXES_KINDS, 3, turn % 4 ? 7 : turn % 8, 40, &dice);
        memset(&desc, 0, sizeof desc);
        desc.half = turn % 3 == 0;
        starts[1] = now.n;
        search->pos = now.pos;
        search->boxes = &now.box;
        search->starts = starts;
        search->systems = 1;
        search->cutoff = now.radius;
        search->half = desc.half;
        search->sorted = turn % 2;
        search->self = self;
        search->way = turn / 2 % 3;     /* chosen, cells, trees */
        answer = turn % 4 < 2 && WIDE_HERE;
        want = wanted_by_python(self);
        CHECK_RESULT(nearfield_search_run(search), NLIST_OK);
        CHECK(search->count == want.count);
        check_answer(search, &want);
        nearfield_search_end(search, turn % 2 ? INT64_MAX : 0);
        free(want.entry);
        boxes_forget(&now);
    }
    nearfield_search_free(search);
}

/* ---- upper halves of the vector registers ---- */

/* Compilers that do not optimize take no care of them. */
#if defined(NLIST_I_AVX2) && defined(__OPTIMIZE__) && !SANITIZED
#include <cpuid.h>
#define UPPER_HALVES , TEST(test_upper_halves)

/* Bit 2: the upper halves are in use (Intel SDM, XGETBV with ECX = 1). While they are, each SSE
   instruction of the caller waits for the one before that wrote to the same register. */
static int upper_halves_in_use(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low & 4) != 0;
}

static int uppers_are_told(void)
{
    unsigned a = 0, b, c, d;
    int unclear;
    if (!WIDE_HERE || !__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 4)) return 0;
    __asm__ volatile("vzeroupper");
    unclear = upper_halves_in_use();
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
    if (unclear || !upper_halves_in_use()) return 0;
    __asm__ volatile("vzeroupper");
    return 1;
}

static void test_upper_halves(void **state)
{
    nlist list = {0};
    int what;
    (void)state;
    if (!uppers_are_told()) skip();
    answer = 1;
    for (what = 0; what < 16; what++) {
        nlist_arrays a;
        memset(&a, 0, sizeof a);
        a.wanted = 1 + 2 + 4 * what;
        boxes_make(&now, 0, 3, 7, MOST, &dice);
        memset(&desc, 0, sizeof desc);
        desc.radius = now.radius;
        desc.shifts = what & 1;
        desc.distances = what >> 1 & 1;
        desc.offsets = what >> 2 & 1;
        desc.half = what >> 3;
        CHECK_RESULT(nlist_build_box(&list, &desc, &now.box, now.pos, 0, now.n), NLIST_OK);
        CHECK(!upper_halves_in_use());
        if (what < 8)
            CHECK_RESULT(nlist_search_box(&list, &desc, &now.box, now.pos, 0, now.n, &a), NLIST_OK);
        CHECK(!upper_halves_in_use());
        boxes_forget(&now);
    }
    nlist_free(&list);
}
#else
#define UPPER_HALVES
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_same_entries),
                                       TEST(test_search_of_python) UPPER_HALVES};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
