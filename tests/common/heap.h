/* heap.h - memory for tests: of exactly the size asked for, and an allocator that counts, checks
   and fails on demand. Everything is static. C99 and C++17.
   SPDX-License-Identifier: MIT OR Unlicense

       real *pos = NEW(real, 3 * n);
       heap h = {0, 0, 0, 0, 0, 0};
       desc.allocator.alloc = heap_alloc;
       desc.allocator.free = heap_free;
       desc.allocator.user = &h; */

#ifndef HEAP_H
#define HEAP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads.h"

/* Memory of exactly the size asked for, so that AddressSanitizer and valgrind see one number too
   many. */
WL_FN void *exactly(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();
    return memset(memory, 0xA5, bytes ? bytes : 1);
}

WL_FN void *zeros(size_t bytes) { return memset(exactly(bytes), 0, bytes); }

#define NEW(type, count) ((type *)exactly((size_t)(count) * sizeof(type)))
#define ZEROS(type, count) ((type *)zeros((size_t)(count) * sizeof(type)))

/* An allocator that counts, checks the sizes given back, and fails at call number fail_at. Every
   block carries its size in front, and behind it bytes that must not change. */
typedef struct heap { int64_t calls, frees, live_bytes, live_blocks, fail_at; int wrong; } heap;

enum { HEAP_FRONT = 64, HEAP_GUARD = 4096 };

WL_FN void *heap_alloc(size_t bytes, void *user)
{
    heap *h = (heap *)user;
    char *memory;
    if (++h->calls == h->fail_at) return NULL;
    if (bytes == 0) h->wrong = 1;
    memory = (char *)exactly(bytes + HEAP_FRONT + HEAP_GUARD);
    memcpy(memory, &bytes, sizeof bytes);
    h->live_bytes += (int64_t)bytes;
    h->live_blocks++;
    return memory + HEAP_FRONT;
}

WL_FN void heap_free(void *memory, size_t bytes, void *user)
{
    heap *h = (heap *)user;
    size_t had;
    const unsigned char *guard;
    if (!memory) { h->wrong = 1; return; }
    memcpy(&had, (char *)memory - HEAP_FRONT, sizeof had);
    if (had != bytes) h->wrong = 1;
    guard = (unsigned char *)memory + had;
    /* each as the one before */
    if (guard[0] != 0xA5 || memcmp(guard, guard + 1, HEAP_GUARD - 1)) h->wrong = 1;
    h->frees++;
    h->live_bytes -= (int64_t)bytes;
    h->live_blocks--;
    free((char *)memory - HEAP_FRONT);
}

/* The same, but the call after one that failed fails, too: a smaller size is not to be had
   either. */
WL_FN void *scarce_alloc(size_t bytes, void *user)
{
    heap *h = (heap *)user;
    if (h->fail_at > 0 && h->calls == h->fail_at) {
        h->calls++;
        return NULL;
    }
    return heap_alloc(bytes, user);
}

/* The same, but 8 bytes off: aligned too little for what the headers ask of an allocator. */
WL_FN void *crooked_alloc(size_t bytes, void *user)
{
    char *memory = (char *)heap_alloc(bytes + 8, user);
    return memory ? memory + 8 : NULL;
}

WL_FN void crooked_free(void *memory, size_t bytes, void *user)
{
    heap_free((char *)memory - 8, bytes + 8, user);
}

#endif /* HEAP_H */
