/* sketch_nlist.c - the names that nlist.h promised before it was written: the sketch of its API in the design, line by line,
   and the grid that it needs. SPDX-License-Identifier: MIT OR Unlicense

   It has to compile as it stands. tests/test_readme.sh compiles it as C99 and, where the kernels can run on the CPU, calls it. */

#define UGRID_CUDA
#define NLIST_CUDA
#include "ugrid.h"
#include "nlist.h"

int64_t sketch(const float *pos, int32_t n, int32_t i, float r, const float *d_pos, struct CUstream_st *stream);

/* The number of contacts, or the negative result that stood in the way. */
int64_t sketch(const float *pos, int32_t n, int32_t i, float r, const float *d_pos, struct CUstream_st *stream)
{
    ugrid grid = {0};
    ugrid_desc cells = {0};
    cells.max[0] = cells.max[1] = cells.max[2] = 1;
    cells.cell = 1.1f * r;
    if (ugrid_build(&grid, &cells, pos, 0, n) != UGRID_OK) return -1;

    nlist list = {0};
    nlist_desc desc = {0};
    desc.radius = r;  desc.skin = 0.1f * r;
    desc.layout = NLIST_HYBRID;                     /* NLIST_STATIC _DYNAMIC _COMPACT */
    desc.width = 8;                                 /* static entries per particle */
    desc.half = 1;                                  /* each pair once */
    desc.history = 4 * sizeof(float);               /* bytes kept per contact, 0 = none */
    nlist_result q = nlist_build_ugrid(&list, &desc, &grid, pos, 0, n);
    nlist_each e = nlist_of(&list, i);
    while (nlist_next(&e)) { int32_t j = e.id; float *spring = (float *)e.history; }
    int64_t const contacts = list.total;
    nlist_free(&list);
    ugrid_free(&grid);

    nlist_box box = {0};                            /* three vectors; which axes are periodic */
    box.cell[0][0] = box.cell[1][1] = box.cell[2][2] = 10;  box.cell[1][0] = 2;
    box.periodic[0] = box.periodic[1] = box.periodic[2] = 1;
    nlist in_box = {0};
    nlist_desc of_box = {0};
    of_box.radius = r;
    of_box.shifts = 1;                              /* entries carry three integers: which image */
    q = nlist_build_box(&in_box, &of_box, &box, pos, 0, n);
    nlist_each image = nlist_of(&in_box, i);
    while (nlist_next(&image)) { int32_t j = image.id; int32_t sx = image.shift[0]; }
    int32_t const starts[2] = {0, n};
    if (q == NLIST_OK) q = nlist_build_boxes(&in_box, &of_box, &box, starts, 1, pos, 0);  /* many systems in one call */
    nlist_free(&in_box);

    ugrid_cuda gpu_grid = {0};
    if (ugrid_cuda_build(&gpu_grid, &cells, d_pos, 0, n, stream) != UGRID_OK) return -1;
    /* GPU: */ nlist_cuda gpu = {0};
    if (q == NLIST_OK) q = nlist_cuda_build_ugrid(&gpu, &desc, &gpu_grid, d_pos, 0, n, stream);
    if (q == NLIST_OK) q = nlist_cuda_check(&gpu, stream);
    int64_t const on_gpu = gpu.device.list.total;
    nlist_cuda_free(&gpu);  ugrid_cuda_free(&gpu_grid);
    return q != NLIST_OK ? -(int64_t)q : contacts == on_gpu ? contacts : -1;
}
