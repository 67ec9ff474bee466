/* counter.c - counts basic blocks, and bytes copied. Compiled without -fsanitize-coverage.
   SPDX-License-Identifier: MIT OR Unlicense */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct costs_work { int64_t blocks, bytes; } costs_work;
extern costs_work costs_now;
costs_work costs_now;

/* Compilers call it at the beginning of every basic block (-fsanitize-coverage=trace-pc). */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { costs_now.blocks++; }

void *costs_copy(void *to, const void *from, size_t bytes);
void *costs_copy(void *to, const void *from, size_t bytes)
{
    costs_now.bytes += (int64_t)bytes;
    return memcpy(to, from, bytes);
}

void *costs_move(void *to, const void *from, size_t bytes);
void *costs_move(void *to, const void *from, size_t bytes)
{
    costs_now.bytes += (int64_t)bytes;
    return memmove(to, from, bytes);
}

void *costs_set(void *to, int value, size_t bytes);
void *costs_set(void *to, int value, size_t bytes)
{
    costs_now.bytes += (int64_t)bytes;
    return memset(to, value, bytes);
}
