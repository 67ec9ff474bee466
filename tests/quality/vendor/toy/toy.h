/* toy.h - v0.1.0 - the smallest header that keeps the rules of this repository.
   SPDX-License-Identifier: MIT OR Unlicense

   It is no part of the product: tests/quality/vendor/run.sh --self-check breaks one rule at a time
   in a copy of it, and sees to it that the matrix notices. It counts the pairs of equal numbers in
   an array. */
#ifndef TOY_H
#define TOY_H

#include <stddef.h>
#include <stdint.h>

#define TOY_VERSION_MAJOR 0
#define TOY_VERSION_MINOR 1
#define TOY_VERSION_PATCH 0

#ifndef TOY_REAL
#define TOY_REAL float
#endif

#define TOY_I_REAL_float  1
#define TOY_I_REAL_double 2
#define TOY_I_PASTE(a, b) a##b
#define TOY_I_KIND_OF(real) TOY_I_PASTE(TOY_I_REAL_, real)
#define TOY_I_REAL_KIND TOY_I_KIND_OF(TOY_REAL)

#if defined(TOY_IMPLEMENTATION) && defined(TOY_CUDA) && !defined(__CUDACC__)
#error "toy.h: TOY_IMPLEMENTATION with TOY_CUDA needs nvcc: put both into one .cu file"
#endif

#ifndef TOY_API
#ifdef TOY_STATIC
#if defined(__GNUC__) || defined(__clang__)
#define TOY_API __attribute__((unused)) static
#else
#define TOY_API static
#endif
#else
#define TOY_API extern
#endif
#endif

#ifdef __CUDACC__
#define TOY_FN static __host__ __device__ __forceinline__
#else
#define TOY_FN static inline
#endif

/* A double build has other symbols: mixed programs do not link. */
#if TOY_I_REAL_KIND == 2
#define toy_count_pairs toy_f64_count_pairs
#define toy_cuda_count  toy_f64_cuda_count
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef TOY_REAL toy_real;
typedef enum toy_result { TOY_OK, TOY_BAD_ARGUMENT } toy_result;
typedef struct toy_array { const toy_real *number; int32_t n; } toy_array;

TOY_API toy_result toy_count_pairs(const toy_array *array, int64_t *pairs);

#ifdef TOY_CUDA
struct CUstream_st;
TOY_API toy_result toy_cuda_count(const toy_array *on_device, int64_t *pairs_on_device,
                                  struct CUstream_st *stream);
#endif

#ifdef __cplusplus
}
#endif

TOY_FN int toy_equal(toy_real a, toy_real b)
{
    return !(a < b) && !(b < a);
}

#endif /* TOY_H */

#if defined(TOY_IMPLEMENTATION) && !defined(TOY_IMPLEMENTATION_DONE)
#define TOY_IMPLEMENTATION_DONE

#include <string.h>

static int64_t toy_i_equal_after(const toy_array *array, int32_t i)
{
    int64_t count = 0;
    int32_t j;
    for (j = i + 1; j < array->n; j++) count += toy_equal(array->number[i], array->number[j]);
    return count;
}

TOY_API toy_result toy_count_pairs(const toy_array *array, int64_t *pairs)
{
    int32_t i;
    if (!array || !pairs || array->n < 0) return TOY_BAD_ARGUMENT;
    memset(pairs, 0, sizeof *pairs);
    for (i = 0; i < array->n; i++) *pairs += toy_i_equal_after(array, i);
    return TOY_OK;
}

#ifdef TOY_CUDA
#include "cuda/toy.cu"
#endif

#endif /* TOY_IMPLEMENTATION */

/* Its part. */
#ifdef TOY_WITH_MOST
#if defined(__has_include)
#if !__has_include("more/toy_most.h")
#error "toy.h: TOY_WITH_MOST needs the file more/toy_most.h: copy the folder more beside toy.h"
#endif
#endif
#include "more/toy_most.h"
#endif
