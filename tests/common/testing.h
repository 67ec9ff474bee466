/* testing.h - what the serial tests share: cmocka, checks that say what was being tested, dice,
   memory (heap.h). Everything is static.
   SPDX-License-Identifier: MIT OR Unlicense

       #include "ugrid.h"          first what is tested,
       #define TESTED ugrid        and its prefix: its numbers are `real`, CHECK_RESULT compares its
                                   results
       #define SHARE environment("UGRID_TEST_SHARE", 1)        of a big product one case of so many
                                                               is run; default: each
       #define LOT environment("UGRID_TEST_LOT", 0)            which one; default: the first
       #include "testing.h" */

#ifndef TESTING_H
#define TESTING_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "heap.h"
#include "workloads.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define TESTING_PASTE(a, b) a##b
#define TESTING_NAME(prefix, name) TESTING_PASTE(prefix, name)
#define OF_TESTED(name) TESTING_NAME(TESTED, name)      /* OF_TESTED(_real) is ugrid_real */

typedef OF_TESTED(_real) real;

#ifndef SHARE
#define SHARE 1
#endif
#ifndef LOT
#define LOT 0
#endif

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define IS_FLOAT (sizeof(real) == sizeof(float))
#define REAL_EPSILON (IS_FLOAT ? 1.1920929e-7 : 2.220446049250313e-16)
#define REAL_LARGEST (IS_FLOAT ? (real)3.402823466e38 : (real)1.7976931348623157e308)
#define REAL_NAN ((real)NAN)
#define REAL_INFINITY ((real)INFINITY)

/* ---- checks ---- */

/* What is being tested, for the message of a failing check. */
static void (*describe)(void);

WL_FN void fail_at(const char *file, int line, const char *what)
{
    print_error("%s:%d: check failed: %s\n", file, line, what);
    if (describe) describe();
    _fail(file, line);
}

#define CHECK(condition) do { if (!(condition)) fail_at(__FILE__, __LINE__, #condition); } while (0)

/* A number that may not be above a bar; NaN is. */
#define CHECK_BELOW(value, bar) do { \
        double const value_ = (value), bar_ = (bar); \
        if (!(value_ <= bar_)) { \
            print_error("%.6g is above %.6g\n", value_, bar_); \
            fail_at(__FILE__, __LINE__, #value); \
        } \
    } while (0)

/* A check of an oracle: NULL, or what is wrong. */
#define CHECK_FINE(call) do { \
        const char *const wrong_ = (call); \
        if (wrong_) { print_error("%s\n", wrong_); fail_at(__FILE__, __LINE__, #call); } \
    } while (0)

/* A result code, and on failure its text. */
#define CHECK_RESULT(call, expected) do { \
        OF_TESTED(_result) const got_ = (call), want_ = (expected); \
        if (got_ != want_) { \
            print_error("got  %s\nwant %s\n", OF_TESTED(_result_text)(got_), \
                OF_TESTED(_result_text)(want_)); \
            fail_at(__FILE__, __LINE__, #call); \
        } \
    } while (0)

WL_FN int same(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

/* What an object holds, as a number: goes on with a sum. */
WL_FN uint64_t mix(uint64_t sum, const void *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t word = 0;
    for (; bytes && count > 0; count -= count < 8 ? count : 8, at += 8) {
        memcpy(&word, at, count < 8 ? count : 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 29;
    }
    return sum;
}

#define MIX(sum, array, count) ((sum) = mix((sum), (array), (size_t)(count) * sizeof *(array)))

/* ---- how much ---- */

WL_FN int environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

WL_FN int small_run(void) { return getenv("TEST_SMALL") != NULL; }

/* `make test`: less still. */
WL_FN int quick_run(void) { return getenv("TEST_QUICK") != NULL; }

/* `make test` runs the builds for float and for double: they take turns at the cases of a product.
   1: it is the other one's turn. */
WL_FN int others_turn(int number) { return quick_run() && number % 2 == !IS_FLOAT; }

/* At the beginning of a test that takes seconds and that `make test` leaves out. */
#define SLOW_TEST() do { if (quick_run()) skip(); } while (0)

/* Every how manyth case of a big product is run. */
WL_FN int share(void)
{
    int const k = SHARE;
    return k < 1 ? 1 : k;
}

/* Which of them: programs that run different ones together run more of the product. */
WL_FN int lot(void) { return LOT % share(); }

/* Is this one of them? Scattered, so that no period of the product falls together with k. */
WL_FN int chosen(int counter)
{
    return ((uint32_t)counter * 2654435761u >> 8) % (uint32_t)share() == (uint32_t)lot();
}

/* ---- dice ---- */

static wl_random dice;

WL_FN int roll(int sides) { return (int)wl_below(&dice, (uint32_t)sides); }

/* A number in [from, to). */
WL_FN real between(real from, real to) { return from + (to - from) * (real)wl_u(&dice); }

/* The number next to x, `steps` (-1, 0, 1) further. */
WL_FN real beside(real x, int steps) { return (real)wl_beside((double)x, steps, sizeof x); }

/* ---- memory and tests ---- */

WL_FN OF_TESTED(_allocator) allocator_of(heap *h)
{
    OF_TESTED(_allocator) a;
    a.alloc = heap_alloc;
    a.free = heap_free;
    a.user = h;
    return a;
}

WL_FN int set_up(void **state)
{
    (void)state;
    dice = wl_seed(7);
    describe = NULL;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

/* ---- which tests ---- */

/* A filter of tests or of groups that nothing matches would look like a test that passes: the
   program then fails, whatever main returns. */
static const char *test_pattern;       /* what main gave to cmocka_set_test_filter */
static int tests_chosen;            /* tests that the filters left */

WL_FN int name_matches(const char *name, const char *pattern)
{
    if (*pattern == '*')
        return name_matches(name, pattern + 1) || (*name && name_matches(name + 1, pattern));
    if (!*pattern) return !*name;
    return *name && (*pattern == '?' || *pattern == *name) && name_matches(name + 1, pattern + 1);
}

WL_FN void fail_without_tests(void)
{
    const char *group = getenv("TEST_GROUP");
    if (tests_chosen > 0) return;
    printf("no test was run: nothing matches '%s'%s%s\n", test_pattern ? test_pattern : "*",
        group ? " in TEST_GROUP=" : "", group ? group : "");
    fflush(stdout);
    _Exit(1);
}

WL_FN void choose_tests(const char *pattern)
{
    if (!test_pattern) atexit(fail_without_tests);
    test_pattern = pattern;
    cmocka_set_test_filter(pattern);
}

WL_FN int run_test_group(const char *name, const struct CMUnitTest *tests, size_t count,
                         int (*before)(void **), int (*after)(void **))
{
    size_t k;
    for (k = 0; k < count; k++)
        tests_chosen += !test_pattern || name_matches(tests[k].name, test_pattern);
    return _cmocka_run_group_tests(name, tests, count, before, after);
}

#undef cmocka_set_test_filter
#undef cmocka_run_group_tests
#undef cmocka_run_group_tests_name
#define cmocka_set_test_filter choose_tests
#define cmocka_run_group_tests_name(name, tests, before, after) \
    run_test_group(name, tests, sizeof(tests) / sizeof *(tests), before, after)
#define cmocka_run_group_tests(tests, before, after) \
    cmocka_run_group_tests_name(#tests, tests, before, after)

/* Is this one of the groups that TEST_GROUP in the environment asks for? Without it all are. */
WL_FN int group_is_chosen(const char *name)
{
    static int registered;
    const char *group = getenv("TEST_GROUP");
    if (!group) return 1;
    if (!registered++) atexit(fail_without_tests);
    return strcmp(group, name) == 0;
}

/* Runs an array of tests as the group of its name, if it is chosen. */
#define RUN_GROUP(failed, tests, tear_down) do { \
        if (group_is_chosen(#tests)) \
            (failed) += cmocka_run_group_tests_name(#tests, tests, NULL, tear_down); \
    } while (0)

#endif /* TESTING_H */
