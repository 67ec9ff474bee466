/* sketch_lbvh.c - the names that lbvh.h promised before it was written: the sketch of its API in the design, line by line.
   SPDX-License-Identifier: MIT OR Unlicense

   It has to compile as it stands. tests/test_readme.sh compiles it as C99 and, where the kernels can run on the CPU, calls it. */

#define LBVH_CUDA
#include "lbvh.h"

int64_t sketch(const float *boxes, int32_t n, const float *box, const float *d_boxes, struct CUstream_st *stream);

/* The number of pairs, or the negative result that stood in the way. */
int64_t sketch(const float *boxes, int32_t n, const float *box, const float *d_boxes, struct CUstream_st *stream)
{
    lbvh tree = {0};
    lbvh_result r = lbvh_build(&tree, NULL, boxes, 0, n);            /* box: min x y z, max x y z */
    lbvh_overlap o = lbvh_overlap_box(&tree, box);
    while (lbvh_next(&o)) { int32_t j = o.id; }
    int64_t pairs; r = lbvh_count_pairs(&tree, &pairs);              /* overlapping boxes, each pair once */
    lbvh_free(&tree);
    /* GPU: */ lbvh_cuda gpu = {0};  r = lbvh_cuda_build(&gpu, NULL, d_boxes, 0, n, stream);  lbvh_cuda_free(&gpu);
    return r == LBVH_OK ? pairs : -(int64_t)r;
}
