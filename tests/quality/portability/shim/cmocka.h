/* cmocka.h - as much of cmocka as tests/test_*.c use, for machines that no cmocka was built for:
   one test after the other, a failure ends the test that found it, and the sums are printed as
   cmocka prints them. SPDX-License-Identifier: MIT OR Unlicense */

#ifndef CMOCKA_H_         /* as the real one: the oracles ask for it */
#define CMOCKA_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
    int (*setup)(void **state);
};

static jmp_buf shim_out;

#define cmocka_unit_test(test) {#test, test, NULL}
#define cmocka_unit_test_setup(test, setup) {#test, test, setup}
#define cmocka_set_test_filter(pattern) ((void)(pattern))
#define skip() longjmp(shim_out, 2)
#define _fail(file, line) (printf("%s:%d: error\n", file, line), longjmp(shim_out, 1))
#define print_message printf
#define print_error printf

/* (the macros over it stand in tests/common/testing.h) */
static int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   int (*setup)(void **), int (*teardown)(void **))
{
    static size_t k;                    /* static: longjmp leaves it alone */
    static int passed, failed, skipped;
    void *state = NULL;
    setvbuf(stdout, NULL, _IOLBF, 4096);
    if (setup && setup(&state)) return 1;
    for (k = 0; k < count; k++) {
        int how;
        printf("[ RUN      ] %s\n", tests[k].name);
        how = setjmp(shim_out);
        if (how == 0) {
            if (tests[k].setup && tests[k].setup(&state)) longjmp(shim_out, 1);
            tests[k].test(&state);
            passed++;
        } else if (how == 2) skipped++;
        else failed++;
        printf("[  %s ] %s\n",
               how == 0   ? "     OK"
               : how == 2 ? "SKIPPED"
                          : " FAILED",
               tests[k].name);
    }
    if (teardown) teardown(&state);
    if (skipped) printf("[  SKIPPED ] %d test(s).\n", skipped);
    printf("[  PASSED  ] %d test(s).\n", passed);
    if (failed) printf("[  FAILED  ] %s: %d test(s)\n", name, failed);
    return failed;
}

#endif
