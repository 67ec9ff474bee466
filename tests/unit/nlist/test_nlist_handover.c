/* test_nlist_handover.c - every way of handing history over from list to list, for up to four
   particles and three lists after another: nlist_handover.h, with serial lists.
   SPDX-License-Identifier: MIT OR Unlicense

   Lists take their memory from an arena. To go back to a state, the arena is copied back. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define TESTED nlist
#include "../../common/testing.h"
#include "../../common/nlist_handover.h"

enum { ROOM = 1 << 16 };

typedef struct memory {
    size_t used;
    unsigned char byte[ROOM];
} memory;

static memory arena, kept[HANDOVER_DEPTH];
static nlist list, kept_list[HANDOVER_DEPTH];

static void *take(size_t bytes, void *user)
{
    size_t const at = arena.used + (size_t)(-(uintptr_t)(arena.byte + arena.used) % 16);
    (void)user;
    if (at > ROOM || bytes > ROOM - at) return NULL;
    arena.used = at + bytes;
    return arena.byte + at;
}

static void leave(void *block, size_t bytes, void *user)
{
    (void)bytes;
    (void)user;
    (void)block; /* it comes back with an earlier state */
}

static nlist_result build(void *state, const nlist_desc *desc, const int32_t *pair, int64_t m,
                          int32_t n)
{
    nlist_desc d = *desc;
    (void)state;
    d.allocator.alloc = take;
    d.allocator.free = leave;
    return nlist_build_pairs(&list, &d, pair, m, n);
}

static nlist_result remap(void *state, const int32_t *new_id, int32_t n, int32_t rows)
{
    (void)state;
    return rows < 0 ? nlist_remap(&list, new_id, n) : nlist_remap_rows(&list, new_id, n, rows);
}

static const nlist *view(void *state)
{
    (void)state;
    return &list;
}

static void stamp(void *state, uint32_t step)
{
    int32_t i;
    (void)state;
    for (i = 0; i < list.row_count; i++) {
        nlist_each e = nlist_of(&list, i);
        while (nlist_next(&e))
            handover_put(e.history, list.desc.history / (int32_t)sizeof(uint32_t),
                         handover_mark(step, i, e.id));
    }
}

static void save(void *state, int depth)
{
    (void)state;
    kept_list[depth] = list;
    kept[depth].used = arena.used;
    memcpy(kept[depth].byte, arena.byte, arena.used);
}

static void restore(void *state, int depth)
{
    (void)state;
    list = kept_list[depth];
    arena.used = kept[depth].used;
    memcpy(arena.byte, kept[depth].byte, arena.used);
}

/* Case number k of the layouts, full and half, without and with ghosts. Events in every second. */
static handover_case case_of(int k)
{
    static const handover_case layouts[] = {
        {{NLIST_STATIC, NLIST_STATIC}, 3, 0, 0, 0, 0, 1},
        {{NLIST_STATIC, NLIST_STATIC}, 2, 0, 0, 0, 1, 4},
        {{NLIST_DYNAMIC, NLIST_DYNAMIC}, 0, 0, 0, 0, 1, 4},
        {{NLIST_COMPACT, NLIST_COMPACT}, 0, 0, 0, 0, 1, 1},
        {{NLIST_HYBRID, NLIST_HYBRID}, 1, 0, 0, 0, 0, 4},
        {{NLIST_HYBRID, NLIST_HYBRID}, 2, 0, 0, 0, 1, 1},
        {{NLIST_HYBRID, NLIST_DYNAMIC}, 2, 0, 0, 0, 1, 1},
        {{NLIST_COMPACT, NLIST_STATIC}, 3, 0, 0, 0, 1, 4},
    };
    handover_case c = layouts[k / 4];
    c.half = k % 2;
    c.ghosts = k / 2 % 2;
    return c;
}

enum { CASES = 32 };

/* Less in `make quick-unit`, with sanitizers and under valgrind. */
static int less(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 1;
#else
    return quick_run() || small_run();
#endif
}

/* So many particles and steps. every: handover.every; rare: handover.rare in a smaller run. all:
   0 = of the four cases of a layout, two. */
static void run(int32_t n, int depth, int64_t every, int64_t rare, int all)
{
    int64_t steps = 0;
    int k;
    for (k = 0; k < CASES; k++) {
        handover h = {0};
        if (!all && (k / 4 + k / 2 + k) % 2) continue;
        h.driver.build = build;
        h.driver.remap = remap;
        h.driver.view = view;
        h.driver.stamp = stamp;
        h.driver.save = save;
        h.driver.restore = restore;
        h.driver.refuses_pairs = 1;
        h.c = case_of(k);
        h.depth = depth;
        h.every = every;
        h.rare = less() ? rare : 1;
        if (less()) h.every *= rare;
        h.turn = k;
        memset(&list, 0, sizeof list);
        arena.used = 0;
        handover_run(&h, n);
        if (h.failures) print_error("  %s\n", h.said);
        CHECK(h.failures == 0);
        steps += h.steps;
    }
    print_message("  %d particles, %d steps after the first list: %lld calls\n", (int)n, depth,
                  (long long)steps);
}

static void test_few(void **state)
{
    (void)state;
    run(1, 3, 8, 1, 1);
    run(2, 3, 8, 5, 1);
}
static void test_three(void **state)
{
    (void)state;
    run(3, 2, 1, 5, 1);
    run(3, 3, 8, 9, 0);
}
static void test_four(void **state)
{
    (void)state;
    run(4, 2, 4, 17, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_three),
        cmocka_unit_test(test_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
