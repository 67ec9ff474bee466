/* memory.h - the memory of one object, in blocks that outlive it where Python looks at them.
   SPDX-License-Identifier: MIT OR Unlicense

   nearfield_alloc and nearfield_free are desc.allocator of the headers, with a nearfield_memory as
   `user`. A block has holders: the object, until it frees it, and every array that is a view of it.
   The last one to let go gives it back to the system. Views may be dropped by any thread. */

typedef struct nearfield_memory {
    void *first;                /* nearfield_i_held: a list */
    int64_t bytes;              /* of all blocks */
} nearfield_memory;

#ifdef NEARFIELD_IMPLEMENTATION

#ifdef _MSC_VER
#include <intrin.h>
#define NEARFIELD_I_ADD(number, more) (_InterlockedExchangeAdd(number, more) + (more))
#else
#define NEARFIELD_I_ADD(number, more) __atomic_add_fetch(number, more, __ATOMIC_ACQ_REL)
#endif

/* In front of each block's bytes. */
typedef struct nearfield_i_held {
    struct nearfield_i_held *next, *previous;
    void *from_system;
    size_t bytes;
    long holders;
} nearfield_i_held;

enum { NEARFIELD_I_FRONT = 128 };       /* bytes for it, and for an address that 64 divides */

static nearfield_i_held *nearfield_i_held_of(void *bytes)
{
    return (nearfield_i_held *)(void *)((char *)bytes - sizeof(nearfield_i_held));
}

NEARFIELD_API void *nearfield_alloc(size_t bytes, void *user)
{
    nearfield_memory *memory = (nearfield_memory *)user;
    char *from_system = bytes < SIZE_MAX - NEARFIELD_I_FRONT
                            ? (char *)nearfield_i_pages(bytes + NEARFIELD_I_FRONT) : NULL;
    nearfield_i_held *block;
    char *at;
    if (!from_system) return NULL;
    at = from_system + NEARFIELD_I_FRONT - (uintptr_t)from_system % 64;
    block = nearfield_i_held_of(at);
    block->from_system = from_system;
    block->bytes = bytes;
    block->holders = 1;
    block->previous = NULL;
    block->next = (nearfield_i_held *)memory->first;
    if (block->next) block->next->previous = block;
    memory->first = block;
    memory->bytes += (int64_t)bytes;
    return at;
}

/* One holder less. */
NEARFIELD_API void nearfield_drop(void *bytes)
{
    nearfield_i_held *block = nearfield_i_held_of(bytes);
    if (NEARFIELD_I_ADD(&block->holders, -1) == 0) free(block->from_system);
}

NEARFIELD_API void nearfield_free(void *bytes, size_t size, void *user)
{
    nearfield_memory *memory = (nearfield_memory *)user;
    nearfield_i_held *block = nearfield_i_held_of(bytes);
    (void)size;
    if (block->next) block->next->previous = block->previous;
    if (block->previous) block->previous->next = block->next;
    else memory->first = block->next;
    memory->bytes -= (int64_t)block->bytes;
    nearfield_drop(bytes);
}

/* The block that holds these bytes, with a holder more; NULL: none does. */
NEARFIELD_API void *nearfield_hold(const nearfield_memory *memory, const void *bytes, size_t size)
{
    nearfield_i_held *block = (nearfield_i_held *)memory->first;
    for (; block; block = block->next) {
        char *at = (char *)block + sizeof *block;
        uintptr_t const offset = (uintptr_t)bytes - (uintptr_t)at;
        if ((uintptr_t)bytes < (uintptr_t)at || offset > block->bytes ||
            size > block->bytes - offset)
            continue;
        (void)NEARFIELD_I_ADD(&block->holders, 1);
        return at;
    }
    return NULL;
}

#endif
