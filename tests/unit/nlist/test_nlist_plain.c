/* test_nlist_plain.c - the plain form of nlist.h (NLIST_PLAIN) makes the lists of its faster forms,
   bit for bit (test_nlist_parallel.c has these), and asks no hook for threads.
   SPDX-License-Identifier: MIT OR Unlicense */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_I_ALONE /* this file compiles its own header */
#define NLIST_PLAIN
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define TESTED nlist
#include "../../common/testing.h"
#include "plain_bits.h"

static void run_nothing(void (*task)(void *context, int32_t index), void *context, int32_t tasks,
                        void *user)
{
    (void)task, (void)context, (void)tasks, (void)user;
}

static void test_same_bits(void **state)
{
    static const nlist_parallel serial;
    (void)state;
    plain_check(serial);
}

static void test_no_tasks(void **state)
{
    nlist_parallel parallel;
    (void)state;
    parallel.run = run_nothing;
    parallel.user = NULL;
    parallel.tasks = 8;
    plain_check(parallel);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        TEST(test_same_bits),
        TEST(test_no_tasks),
    };
    int failed = 0;
    RUN_GROUP(failed, plain, NULL);
    return failed;
}
