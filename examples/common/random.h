/* random.h - random numbers: xorshift64* (Vigna 2016), whose upper bits are the good ones. The same
   numbers on all machines.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_RANDOM_H
#define EXAMPLES_RANDOM_H

#include <stdint.h>

static inline uint64_t random_seed(int32_t seed)
{
    return UINT64_C(0x9E3779B97F4A7C15) * ((uint64_t)seed + 1);
}

static inline uint64_t random_bits(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

/* From 0 to below 1. */
static inline float random_float(uint64_t *state)
{
    return (float)(random_bits(state) >> 40) * (1.0f / 16777216.0f);
}

static inline double random_double(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) / 9007199254740992.0;
}

/* 0 .. below - 1 */
static inline int32_t random_below(uint64_t *state, int32_t below)
{
    return (int32_t)((random_bits(state) >> 32) * (uint32_t)below >> 32);
}

#endif /* EXAMPLES_RANDOM_H */
