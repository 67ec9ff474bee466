/* sketch_nbody.c - the names that nbody.h promised before it was written: the sketch of its API in the design, line by line, and
   the same on the GPU. SPDX-License-Identifier: MIT OR Unlicense

   It has to compile as it stands. tests/test_readme.sh compiles it as C99 and, where the kernels can run on the CPU, calls it. */

#define NBODY_CUDA
#include "nbody.h"

int sketch(const float *pos, const float *mass, int32_t n, float *acc, const float *d_pos, const float *d_mass, float *d_acc,
           struct CUstream_st *stream);

/* The number of bodies, or the negative result that stood in the way. acc, and then d_acc, have the forces. */
int sketch(const float *pos, const float *mass, int32_t n, float *acc, const float *d_pos, const float *d_mass, float *d_acc,
           struct CUstream_st *stream)
{
    nbody sim = {0};
    nbody_desc desc = {0};
    desc.method = NBODY_FORCE_NODES;                /* NBODY_DIRECT _VIRTUAL_PARTICLES */
    desc.levels = 0;                                /* 0 = chosen from n */
    desc.gravity = 1;  desc.softening = 0;
    nbody_result r = nbody_accelerations(&sim, &desc, pos, 0, mass, n, acc);    /* mass NULL: all 1; acc: n x 2 */
    nbody_free(&sim);
    /* GPU: */ nbody_cuda gpu = {0};
    if (r == NBODY_OK) r = nbody_cuda_accelerations(&gpu, &desc, d_pos, 0, d_mass, n, d_acc, stream);
    if (r == NBODY_OK) r = nbody_cuda_check(&gpu, NULL, stream);
    nbody_cuda_free(&gpu);
    return r != NBODY_OK ? -(int)r : (int)n;
}
