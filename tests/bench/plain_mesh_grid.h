/* plain_mesh_grid.h - triangles in a uniform grid: how the source found them before it had a tree
   (004, section 2.3.3), as a contrast to lbvh.h; one text for C and CUDA.

       1. count   the cells that each triangle's box overlaps,
       2. room    for that many entries,
       3. fill    an entry (cell, triangle) for each of these cells,
       4. sort    the entries by cell,
       5. start   the first entry of each cell, where there is one.

   Its time depends on the cells: a triangle as wide as 20 of them has 400 entries, and every cell
   of the whole box has a start. A search looks at all cells that the sphere's box overlaps, and so
   meets a triangle several times: it counts in the first cell that both boxes share.

   Of triangles that share the touched edge or vertex one is in contact, by the rule of nlist.h's
   lists (nlist_build_mesh): the closest, then the lowest. Here all triangles of the search are
   looked through for it, there the tree. (nlist_i_square_between rounds alike on both sides: two
   triangles must agree on which of them is closer.)

   Include lbvh.h and nlist.h first.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PLAIN_MESH_GRID_H
#define PLAIN_MESH_GRID_H

#include "bench.h"

/* CUDA: the arrays are device memory. */
typedef struct plain_mesh_grid {
    float low[3], cell;
    int32_t cells[3];
    int64_t entries;
    int32_t *start;             /* [cells] the first entry, -1: none */
    int32_t *cell_of;           /* [entries] sorted */
    int32_t *triangle;          /* [entries] */
} plain_mesh_grid;

typedef struct plain_cells { int32_t low[3], high[3]; } plain_cells;

/* ---- both sides ---- */

NLIST_FN int32_t plain_mesh_axis(const plain_mesh_grid *g, int a, float x)
{
    float const at = (x - g->low[a]) / g->cell;
    if (!(at > 0)) return 0;
    return at < (float)g->cells[a] ? (int32_t)at : g->cells[a] - 1;
}

/* The cells that the box min .. max overlaps; outside of the grid: its outermost. */
NLIST_FN plain_cells plain_mesh_cells(const plain_mesh_grid *g, const float min[3],
                                      const float max[3])
{
    plain_cells c;
    int a;
    for (a = 0; a < 3; a++) {
        c.low[a] = plain_mesh_axis(g, a, min[a]);
        c.high[a] = plain_mesh_axis(g, a, max[a]);
    }
    return c;
}

NLIST_FN plain_cells plain_mesh_cells_of(const plain_mesh_grid *g, const nlist_mesh *mesh,
                                         int32_t t)
{
    const float *corner[3];
    float min[3], max[3];
    int a, v;
    nlist_mesh_corners(mesh, t, corner);
    for (a = 0; a < 3; a++) {
        min[a] = max[a] = corner[0][a];
        for (v = 1; v < 3; v++) {
            if (corner[v][a] < min[a]) min[a] = corner[v][a];
            if (corner[v][a] > max[a]) max[a] = corner[v][a];
        }
    }
    return plain_mesh_cells(g, min, max);
}

NLIST_FN int64_t plain_mesh_count(plain_cells c)
{
    return (int64_t)(c.high[0] - c.low[0] + 1) * (c.high[1] - c.low[1] + 1) *
           (c.high[2] - c.low[2] + 1);
}

NLIST_FN int32_t plain_mesh_number(const plain_mesh_grid *g, const int32_t at[3])
{
    return (at[2] * g->cells[1] + at[1]) * g->cells[0] + at[0];
}

/* The next cell of c, along x first; 0 after the last. */
NLIST_FN int plain_mesh_step(const plain_cells *c, int32_t at[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        if (at[a] < c->high[a]) {
            at[a]++;
            return 1;
        }
        at[a] = c->low[a];
    }
    return 0;
}

/* Triangles whose boxes share cells with a sphere's, each once. */
typedef struct plain_mesh_near {
    const plain_mesh_grid *grid;
    const nlist_mesh *mesh;
    plain_cells cells;
    int32_t at[3], number, id;
    int64_t entry;              /* -1: the cells are all done */
} plain_mesh_near;

NLIST_FN void plain_mesh_enter(plain_mesh_near *n)
{
    n->number = plain_mesh_number(n->grid, n->at);
    n->entry = n->grid->start[n->number];
    while (n->entry < 0 && plain_mesh_step(&n->cells, n->at)) {
        n->number = plain_mesh_number(n->grid, n->at);
        n->entry = n->grid->start[n->number];
    }
}

NLIST_FN plain_mesh_near plain_mesh_around(const plain_mesh_grid *g, const nlist_mesh *mesh,
                                           const float p[3], float reach)
{
    plain_mesh_near n;
    float min[3], max[3];
    int a;
    for (a = 0; a < 3; a++) {
        min[a] = p[a] - reach;
        max[a] = p[a] + reach;
    }
    n.grid = g;
    n.mesh = mesh;
    n.cells = plain_mesh_cells(g, min, max);
    for (a = 0; a < 3; a++) n.at[a] = n.cells.low[a];
    n.id = -1;
    plain_mesh_enter(&n);
    return n;
}

/* Is this the first cell that triangle t and the search share? */
NLIST_FN int plain_mesh_first(const plain_mesh_near *n, int32_t t)
{
    plain_cells const c = plain_mesh_cells_of(n->grid, n->mesh, t);
    int a;
    for (a = 0; a < 3; a++)
        if (n->at[a] != (c.low[a] > n->cells.low[a] ? c.low[a] : n->cells.low[a])) return 0;
    return 1;
}

NLIST_FN int plain_mesh_next(plain_mesh_near *n)
{
    while (n->entry >= 0) {
        int32_t const t = n->grid->triangle[n->entry];
        int const first = plain_mesh_first(n, t);
        n->entry++;
        if (n->entry >= n->grid->entries || n->grid->cell_of[n->entry] != n->number) {
            n->entry = -1;
            if (plain_mesh_step(&n->cells, n->at)) plain_mesh_enter(n);
        }
        if (!first) continue;
        n->id = t;
        return 1;
    }
    return 0;
}

/* Has another triangle the contact at q, which is the closest point of t to p? */
NLIST_FN int plain_mesh_taken(const plain_mesh_grid *g, const nlist_mesh *mesh, const float p[3],
                              float reach, int32_t t, const float q[3])
{
    float const same = reach * (1.0f / 1024), d2 = nlist_i_square_between(p, q);
    plain_mesh_near n = plain_mesh_around(g, mesh, p, reach);
    while (plain_mesh_next(&n)) {
        float r[3], through[3], r2;
        if (n.id == t) continue;
        (void)nlist_mesh_closest(mesh, n.id, p, r);
        r2 = nlist_i_square_between(p, r);
        if (r2 > d2 || (r2 == d2 && n.id > t)) continue;
        (void)nlist_mesh_closest(mesh, n.id, q, through);
        if (nlist_i_square_between(q, through) <= same * same) return 1;
    }
    return 0;
}

/* The next contact of a search that began with plain_mesh_around(.., p, reach): its key, as in a
   list of nlist_build_mesh; -1 after the last. */
NLIST_FN int32_t plain_mesh_contact(plain_mesh_near *n, const float p[3], float reach)
{
    while (plain_mesh_next(n)) {
        float q[3];
        int32_t const feature = nlist_mesh_closest(n->mesh, n->id, p, q);
        if (nlist_i_square_between(p, q) > reach * reach) continue;
        if (!plain_mesh_taken(n->grid, n->mesh, p, reach, n->id, q))
            return nlist_key(n->id, feature);
    }
    return -1;
}

/* ---- the build, serial: the sort is a counting sort ---- */

/* A grid over low .. high without entries. */
BENCH_FN plain_mesh_grid plain_mesh_grid_over(const float low[3], const float high[3], float cell)
{
    plain_mesh_grid g;
    int a;
    memset(&g, 0, sizeof g);
    g.cell = cell;
    for (a = 0; a < 3; a++) {
        g.low[a] = low[a];
        g.cells[a] = (int32_t)((high[a] - low[a]) / cell) + 1;
    }
    return g;
}

BENCH_FN size_t plain_mesh_grid_cells(const plain_mesh_grid *g)
{
    return (size_t)g->cells[0] * (size_t)g->cells[1] * (size_t)g->cells[2];
}

#ifndef __CUDACC__

/* One more, or a place for it, in each cell of triangle t. */
static void plain_mesh_put(plain_mesh_grid *g, const nlist_mesh *mesh, int32_t t, int fill)
{
    plain_cells const c = plain_mesh_cells_of(g, mesh, t);
    int32_t at[3] = {c.low[0], c.low[1], c.low[2]};
    do {
        int32_t const number = plain_mesh_number(g, at), place = g->start[number]++;
        if (!fill) continue;
        g->cell_of[place] = number;
        g->triangle[place] = t;
    } while (plain_mesh_step(&c, at));
}

/* Counts, then the first entry of each cell, then the entries, which move the starts to the ends;
   last the starts again, -1 where there is no entry. */
static void plain_mesh_grid_build(plain_mesh_grid *g, const nlist_mesh *mesh)
{
    size_t const cells = plain_mesh_grid_cells(g);
    size_t c;
    int32_t t, sum = 0, before = 0;
    memset(g->start, 0, cells * sizeof *g->start);
    for (t = 0; t < mesh->triangles; t++) plain_mesh_put(g, mesh, t, 0);
    for (c = 0; c < cells; c++) {
        int32_t const count = g->start[c];
        g->start[c] = sum;
        sum += count;
    }
    for (t = 0; t < mesh->triangles; t++) plain_mesh_put(g, mesh, t, 1);
    for (c = 0; c < cells; c++) {
        int32_t const end = g->start[c];
        g->start[c] = end > before ? before : -1;
        before = end;
    }
}

/* Room for the triangles as they lie. */
static void plain_mesh_grid_room(plain_mesh_grid *g, const nlist_mesh *mesh)
{
    int32_t t;
    g->entries = 0;
    for (t = 0; t < mesh->triangles; t++)
        g->entries += plain_mesh_count(plain_mesh_cells_of(g, mesh, t));
    if (g->entries > INT32_MAX || plain_mesh_grid_cells(g) > INT32_MAX) {
        printf("more entries or cells than an int32_t counts\n");
        exit(1);
    }
    g->start = (int32_t *)bench_alloc(plain_mesh_grid_cells(g) * sizeof *g->start);
    g->cell_of = (int32_t *)bench_alloc((size_t)g->entries * sizeof *g->cell_of);
    g->triangle = (int32_t *)bench_alloc((size_t)g->entries * sizeof *g->triangle);
}

static void plain_mesh_grid_free(plain_mesh_grid *g)
{
    free(g->start);
    free(g->cell_of);
    free(g->triangle);
}

#endif /* __CUDACC__ */

#endif /* PLAIN_MESH_GRID_H */
