/* counted.h - included before everything else where work is counted (unit.mk): copies are counted.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COUNTED_H
#define COUNTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The basic blocks that ran, and the bytes that were copied or set: counter.c. */
typedef struct costs_work { int64_t blocks, bytes; } costs_work;
extern costs_work costs_now;

void *costs_copy(void *to, const void *from, size_t bytes);
void *costs_move(void *to, const void *from, size_t bytes);
void *costs_set(void *to, int value, size_t bytes);

#define memcpy(to, from, bytes) costs_copy(to, from, bytes)
#define memmove(to, from, bytes) costs_move(to, from, bytes)
#define memset(to, value, bytes) costs_set(to, value, bytes)

#endif /* COUNTED_H */
