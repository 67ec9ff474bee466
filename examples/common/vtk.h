/* vtk.h - legacy VTK files for ParaView: binary, with the most significant byte first, or text.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_VTK_H
#define EXAMPLES_VTK_H

#include "base.h"

typedef struct vtk {
    out_file out;
    int ascii;
} vtk;

/* OUT/NAME_0007.vtk, up to the kind of its data. */
static inline vtk vtk_begin_as(const char *out, const char *name, int32_t number, int32_t step,
                               int ascii, const char *dataset)
{
    char file[64];
    vtk v;
    snprintf(file, sizeof file, "%s_%04ld.vtk", name, (long)number);
    v.out = create_in(out, file);
    v.ascii = ascii;
    fprintf(v.out.file, "# vtk DataFile Version 3.0\n%s, step %ld\n%s\nDATASET %s\n", name,
            (long)step, ascii ? "ASCII" : "BINARY", dataset);
    return v;
}

/* Points, lines, polygons. */
static inline vtk vtk_begin(const char *out, const char *name, int32_t number, int32_t step,
                            int ascii)
{
    return vtk_begin_as(out, name, number, step, ascii, "POLYDATA");
}

/* A box of cells from the corner `low` on; then come values of each cell, x fastest. 0 cells: an
   axis that is not there. */
static inline vtk vtk_begin_grid(const char *out, const char *name, int32_t number, int32_t step,
                                 int ascii, const int32_t cells[3], const double low[3],
                                 const double edge[3])
{
    vtk const v = vtk_begin_as(out, name, number, step, ascii, "STRUCTURED_POINTS");
    double count = 1;
    int a;
    for (a = 0; a < 3; a++) count *= cells[a] ? cells[a] : 1;
    fprintf(v.out.file, "DIMENSIONS %ld %ld %ld\nORIGIN %.9g %.9g %.9g\nSPACING %.9g %.9g %.9g\n",
            (long)cells[0] + 1, (long)cells[1] + 1, (long)cells[2] + 1, low[0], low[1], low[2],
            edge[0], edge[1], edge[2]);
    fprintf(v.out.file, "CELL_DATA %.0f", count);
    return v;
}

static inline void vtk_word(const vtk *v, uint32_t word)
{
    unsigned char const bytes[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16),
                                    (unsigned char)(word >> 8), (unsigned char)word};
    fwrite(bytes, 1, 4, v->out.file);
}

static inline void vtk_ints(const vtk *v, const int32_t *values, int count)
{
    int k;
    for (k = 0; k < count; k++) {
        if (v->ascii) fprintf(v->out.file, "%ld%c", (long)values[k], k + 1 < count ? ' ' : '\n');
        else vtk_word(v, (uint32_t)values[k]);
    }
}

static inline void vtk_floats(const vtk *v, const float *values, int count)
{
    uint32_t word;
    int k;
    for (k = 0; k < count; k++) {
        memcpy(&word, values + k, 4);
        if (v->ascii) fprintf(v->out.file, "%.9g%c", (double)values[k], k + 1 < count ? ' ' : '\n');
        else vtk_word(v, word);
    }
}

/* `count` floats of each of n records of `stride` floats. */
static inline void vtk_columns(const vtk *v, const float *values, int32_t n, int stride, int count)
{
    int32_t i;
    for (i = 0; i < n; i++) vtk_floats(v, values + (size_t)stride * (size_t)i, count);
}

/* Points, each a cell of its own. */
static inline void vtk_points(const vtk *v, const float *pos, int32_t n, int stride)
{
    int32_t cell[2] = {1, 0};
    fprintf(v->out.file, "POINTS %ld float\n", (long)n);
    vtk_columns(v, pos, n, stride, 3);
    fprintf(v->out.file, "\nVERTICES %ld %ld\n", (long)n, 2 * (long)n);
    for (; cell[1] < n; cell[1]++) vtk_ints(v, cell, 2);
    fprintf(v->out.file, "\nPOINT_DATA %ld", (long)n);
}

static inline void vtk_vectors(const vtk *v, const char *name, const float *values, int32_t n,
                               int stride)
{
    fprintf(v->out.file, "\nVECTORS %s float\n", name);
    vtk_columns(v, values, n, stride, 3);
}

/* The head of a scalar field; its values follow. */
static inline void vtk_scalars(const vtk *v, const char *name, const char *type)
{
    fprintf(v->out.file, "\nSCALARS %s %s 1\nLOOKUP_TABLE default\n", name, type);
}

static inline void vtk_end(const vtk *v) { close_file(&v->out); }

#endif /* EXAMPLES_VTK_H */
