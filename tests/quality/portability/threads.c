/* Does the hook of the Python library run tasks at the same time, each once, and all with the
   caller's rounding? Two tasks wait for each other: with one thread they would wait in vain.
   SPDX-License-Identifier: MIT OR Unlicense */
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask, under -std=c99 */
#include "ugrid.h"
#include <stdio.h>
#include <time.h>
#define NEARFIELD_API static
#include "packaging/python/library/threads.h"

static volatile int here[2], met, rounding[2];
static int32_t times[500];

static void meet(void *context, int32_t index)
{
    time_t const began = time(NULL);
    (void)context;
    rounding[index] = fegetround();
    here[index] = 1;
    while (!here[1 - index] && time(NULL) - began < 20) continue;
    if (here[1 - index]) met = 1;
}

static void count(void *context, int32_t index)
{
    (void)context;
    times[index]++;
}

int main(void)
{
    int32_t k, right = 0, up = 1;
    nearfield_run(meet, NULL, 2, (void *)(intptr_t)2);
    nearfield_run(count, NULL, 500, (void *)(intptr_t)8);
    nearfield_run(count, NULL, 250, (void *)(intptr_t)1);
    for (k = 0; k < 500; k++) right += times[k] == (k < 250 ? 2 : 1);
#ifdef FE_UPWARD
    if (fesetround(FE_UPWARD) == 0) {
        here[0] = here[1] = 0;
        nearfield_run(meet, NULL, 2, (void *)(intptr_t)2);
        up = rounding[0] == FE_UPWARD && rounding[1] == FE_UPWARD;
        (void)fesetround(FE_TONEAREST);
    }
#endif
    nearfield_end_threads();    /* the pool starts anew */
    met = here[0] = here[1] = 0;
    nearfield_run(meet, NULL, 2, (void *)(intptr_t)2);
    nearfield_end_threads();
    printf("%s, %d of 500 tasks, %s\n", met ? "at the same time" : "one after the other",
           (int)right, up ? "rounded as the caller does" : "rounded in another way");
    return !met || right != 500 || !up;
}
