/* sketch_ugrid.c - the names that ugrid.h promised before it was written: the sketch of its API in the design, line by line.
   SPDX-License-Identifier: MIT OR Unlicense

   It has to compile as it stands. tests/test_readme.sh compiles it as C99 and, where the kernels can run on the CPU, calls it. */

#define UGRID_CUDA
#include "ugrid.h"

int64_t sketch(const float *pos, int32_t n, int32_t i, float radius, const float *d_pos, struct CUstream_st *stream);

/* The number of pairs, or the negative result that stood in the way. */
int64_t sketch(const float *pos, int32_t n, int32_t i, float radius, const float *d_pos, struct CUstream_st *stream)
{
    ugrid grid = {0};
    ugrid_desc desc = {0};
    desc.dim = 3;                                   /* 2 or 3 */
    desc.min[0] = desc.min[1] = desc.min[2] = 0;
    desc.max[0] = desc.max[1] = desc.max[2] = 1;
    desc.cell = 0.05f;                              /* edge of a cell */
    desc.periodic[0] = 1;                           /* per axis; 0 = clamp into the border cells */
    desc.slots = 32;                                /* UGRID_FIXED only */
    desc.method = UGRID_SORT;                       /* UGRID_COUNT _FIXED _LIST _LIST_PACKED; 0 = automatic */
    ugrid_result r = ugrid_build(&grid, &desc, pos, 0, n);
    ugrid_near near = ugrid_near_point(&grid, pos + 3 * i);
    while (ugrid_next(&near)) { int32_t j = near.id; }
    int64_t pairs; r = ugrid_count_pairs(&grid, radius, &pairs);     /* each pair once */
    ugrid_free(&grid);
    /* GPU: */ ugrid_cuda gpu = {0};  r = ugrid_cuda_build(&gpu, &desc, d_pos, 0, n, stream);  ugrid_cuda_free(&gpu);
    return r == UGRID_OK ? pairs : -(int64_t)r;
}
