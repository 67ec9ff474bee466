/* more/toy_most.h - v0.1.0 - a part of toy.h: the number that an array has most often.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef TOY_H
#error "more/toy_most.h is a part of toy.h: define TOY_WITH_MOST and include toy.h"
#endif
#if 10000 * TOY_VERSION_MAJOR + 100 * TOY_VERSION_MINOR + TOY_VERSION_PATCH != 100
#error "more/toy_most.h 0.1.0 and toy.h are of different versions: copy both from one release"
#endif

#ifndef TOY_MOST_H
#define TOY_MOST_H

#if TOY_I_REAL_KIND == 2
#define toy_most      toy_f64_most
#define toy_cuda_most toy_f64_cuda_most
#endif

#ifdef __cplusplus
extern "C" {
#endif

TOY_API toy_result toy_most(const toy_array *array, toy_real *number);

#ifdef TOY_CUDA
TOY_API toy_result toy_cuda_most(const toy_array *on_device, toy_real *on_device_too,
                                 struct CUstream_st *stream);
#endif

#ifdef __cplusplus
}
#endif

#endif /* TOY_MOST_H */

#if defined(TOY_IMPLEMENTATION) && !defined(TOY_MOST_IMPLEMENTATION_DONE)
#define TOY_MOST_IMPLEMENTATION_DONE

TOY_API toy_result toy_most(const toy_array *array, toy_real *number)
{
    int64_t most = -1;
    int32_t i;
    if (!array || !number || array->n < 1) return TOY_BAD_ARGUMENT;
    for (i = 0; i < array->n; i++) {
        int64_t const now = toy_i_equal_after(array, i);
        if (now <= most) continue;
        most = now;
        *number = array->number[i];
    }
    return TOY_OK;
}

#ifdef TOY_CUDA
#include "../cuda/toy_most.cu"
#endif

#endif /* TOY_IMPLEMENTATION */
