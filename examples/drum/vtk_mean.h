/* vtk_mean.h - velocities of particles, averaged over the cells of a grid and over time, for
   ParaView. So simulations of beds and drums are compared with measurements (source 004, section
   6.2.1).
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_VTK_MEAN_H
#define EXAMPLES_VTK_MEAN_H

#include "../../ugrid.h"
#include "../common/vtk.h"

typedef struct vtk_mean {
    ugrid_desc desc;        /* box and cells */
    ugrid grid;
    ugrid_real *now;        /* [4 cells] sums of one moment */
    double *sum;            /* [4 cells] sums of all moments: velocities, and how many they are */
    int64_t moments;
} vtk_mean;

/* Adds the particles as they are now. pos: 3 numbers, vel: 4 (the last is not used), both with 4
   numbers a particle. */
static inline void vtk_mean_add(vtk_mean *m, const ugrid_real *pos, const ugrid_real *vel,
                                int32_t n)
{
    size_t const stride = 4 * sizeof *pos;
    int32_t c;
    int a;
    m->desc.method = UGRID_COUNT;
    MUST(ugrid, ugrid_build(&m->grid, &m->desc, pos, stride, n), "the grid of averages");
    if (!m->sum) {
        m->now = (ugrid_real *)zeros(4 * (size_t)m->grid.cell_count, sizeof *m->now);
        m->sum = (double *)zeros(4 * (size_t)m->grid.cell_count, sizeof *m->sum);
    }
    MUST(ugrid, ugrid_cell_sums(&m->grid, vel, 4, m->now), "sums of velocities");
    for (c = 0; c < m->grid.cell_count; c++) {
        double *sum = m->sum + 4 * (size_t)c;
        for (a = 0; a < 3; a++) sum[a] += (double)m->now[4 * (size_t)c + (size_t)a];
        sum[3] += m->grid.start[c + 1] - m->grid.start[c];
    }
    m->moments++;
}

/* OUT/velocity_0000.vtk: for each cell the mean velocity of the particles that were in it (0: there
   was none), and how many were in it at a time. */
static inline void vtk_mean_write(const vtk_mean *m, const char *out, int32_t step, int ascii)
{
    const ugrid_axis *axis = m->grid.axis;
    int32_t const cells[3] = {axis[0].cells, axis[1].cells, axis[2].cells};
    double low[3], edge[3];
    vtk v;
    int32_t c;
    int a;
    for (a = 0; a < 3; a++) {
        low[a] = (double)axis[a].min;
        edge[a] = ((double)axis[a].max - low[a]) / cells[a];
    }
    v = vtk_begin_grid(out, "velocity", 0, step, ascii, cells, low, edge);
    fprintf(v.out.file, "\nVECTORS velocity float\n");
    for (c = 0; c < m->grid.cell_count; c++) {
        const double *sum = m->sum + 4 * (size_t)c;
        double const count = sum[3] > 0 ? sum[3] : 1;
        float const mean[3] = {(float)(sum[0] / count), (float)(sum[1] / count),
                               (float)(sum[2] / count)};
        vtk_floats(&v, mean, 3);
    }
    vtk_scalars(&v, "particles", "float");
    for (c = 0; c < m->grid.cell_count; c++) {
        float const often = (float)(m->sum[4 * (size_t)c + 3] / (double)m->moments);
        vtk_floats(&v, &often, 1);
    }
    vtk_end(&v);
}

static inline void vtk_mean_free(vtk_mean *m)
{
    ugrid_free(&m->grid);
    free(m->now);
    free(m->sum);
    memset(m, 0, sizeof *m);
}

#endif /* EXAMPLES_VTK_MEAN_H */
