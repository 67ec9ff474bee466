/* coating.c - tablets and spheres in a rotating drum are coated: spray is rays, each of which
   deposits its mass where it first hits.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: closest hits of many rays with particles of your own shapes, found in two ways.
   Source 004 (Kureck 2016, section 7.1) sprays with rays that walk through the cells of a uniform
   grid, which is "rather slow because to work correctly it has to loop over many cells", and
   expects its tree to be "a better acceleration structure".

           \ | /   nozzle           grid: the ray goes from cell to cell, and tests what is there,
            \|/                           also in empty ones
          .  |  .                   tree: it enters boxes, the nearest first, until none begins
        O.O.OO.O O O                      before the hit that it has

   The bed moves as that of tablets.c, whose steps are used. A hit is exact: with a ball, or with
   the band and the two caps of a tablet (common/shape_ray.h).

   How to run it (half a minute):

       make build/coating && build/coating             (from the top of the repository), or
       cc -O3 examples/coating/coating.c -o coating -lstb -lm
       ./coating -n 20000 --seconds 0.001 --rays 100000 --time

   The first draws build/coating.png: the bed, and the coating of the particles over time. The
   second compares the searches, whose hits must be the same.

   What to look at: >>tree and >>grid below. coating.cu is the same on a GPU. */

#ifndef PROGRAM
#define PROGRAM "coating"
#define LBVH_WITH_WIDE /* more/lbvh_wide.h: trees of eight children */
#define TABLETS_AS_PART
#include "../tablets/tablets.c" /* without its main: the bed and its steps */
#endif

#include "coating.h"

/* -------------------------------------------------------------------------------------------------
   >>tree: leaves along the ray, the nearest subtree first; what begins behind the hit is left out
   ---------------------------------------------------------------------------------------------- */

DEM_FN coat_hit coat_by_tree(const lbvh *tree, const dem_bodies *bodies, const dem_real *ray)
{
    lbvh_ray walk = lbvh_ray_cast(tree, ray, ray + 3, COAT_FAR);
    coat_hit best = coat_no_hit();
    while (lbvh_next_ray(&walk)) {
        coat_test(bodies, walk.id, ray, &best);
        walk.t_max = best.t;
    }
    return best;
}

/* -------------------------------------------------------------------------------------------------
   >>grid: from cell to cell along the ray (J. Amanatides, A. Woo, A fast voxel traversal algorithm
   for ray tracing, Eurographics 1987)

       +-----+-----+-----+       next[a]: where the ray leaves its cell along axis a. The least of
       |     |    .|'''''|       them is where it leaves the cell, and that axis steps. So cells
       +-----+.''--+-----+       come in the order of the ray, and a hit before the end of a cell
       | ..''|     |     |       is the closest one.
       +-----+-----+-----+

   reach 0: a particle is listed in every cell that it touches (UGRID_TIGHT): the ray's own cells
   are enough. reach 1: it is listed in the cell of its middle (UGRID_LOOSE): all 27 cells around
   must be looked at; after a step 9 of them are new.
   ---------------------------------------------------------------------------------------------- */

typedef struct coat_walk {
    int32_t cell[3], low[3], high[3];   /* where the ray is; the cells to look at: low .. high */
    dem_real end;                       /* where it leaves the box of the grid */
} coat_walk;

DEM_FN dem_real coat_border(const ugrid_axis *axis, const dem_real *ray, int a, int32_t border)
{
    return (axis->min + (dem_real)border / axis->per_cell - ray[a]) / ray[3 + a];
}

DEM_FN void coat_around(int32_t reach, coat_walk *w)
{
    int a;
    for (a = 0; a < 3; a++) {
        w->low[a] = w->cell[a] - reach;
        w->high[a] = w->cell[a] + reach;
    }
}

/* Into the box of the grid; 0: the ray passes it by. */
DEM_FN int coat_enter(const ugrid *grid, const dem_real *ray, int32_t reach, coat_walk *w)
{
    dem_real begin = 0;
    int a;
    w->end = COAT_FAR;
    for (a = 0; a < 3; a++) {
        const ugrid_axis *axis = &grid->axis[a];
        int32_t const back = ray[3 + a] < 0 ? axis->cells : 0;
        if (!(ray[3 + a] < 0 || ray[3 + a] > 0)) {
            if (ray[a] < axis->min || ray[a] > axis->max) return 0;
            continue;
        }
        begin = coat_larger(begin, coat_border(axis, ray, a, back));
        w->end = -coat_larger(-w->end, -coat_border(axis, ray, a, axis->cells - back));
    }
    for (a = 0; a < 3; a++) {
        const ugrid_axis *axis = &grid->axis[a];
        dem_real const at = (ray[a] + begin * ray[3 + a] - axis->min) * axis->per_cell;
        w->cell[a] = at > 0 ? at < axis->last ? (int32_t)at : axis->cells - 1 : 0;
    }
    coat_around(reach, w);
    return begin <= w->end;
}

/* Where the ray leaves its cell: returns t, *axis: through which side. */
DEM_FN dem_real coat_leaves(const ugrid *grid, const dem_real *ray, const coat_walk *w, int *axis)
{
    dem_real least = w->end;
    int a;
    *axis = -1;
    for (a = 0; a < 3; a++) {
        dem_real t;
        if (!(ray[3 + a] < 0 || ray[3 + a] > 0)) continue;
        t = coat_border(&grid->axis[a], ray, a, w->cell[a] + (ray[3 + a] > 0));
        if (!(t < least)) continue;
        least = t;
        *axis = a;
    }
    return least;
}

/* Into the next cell; of those around it only the new ones are looked at. */
DEM_FN int coat_step(const ugrid *grid, const dem_real *ray, int32_t reach, int axis, coat_walk *w)
{
    int32_t const step = ray[3 + axis] < 0 ? -1 : 1;
    w->cell[axis] += step;
    coat_around(reach, w);
    w->low[axis] = w->high[axis] = w->cell[axis] + step * reach;
    return w->cell[axis] >= 0 && w->cell[axis] < grid->axis[axis].cells;
}

DEM_FN void coat_look(const ugrid *grid, const dem_bodies *bodies, const dem_real *ray,
                      const coat_walk *w, coat_hit *best)
{
    int32_t x, y, z, k;
    for (z = w->low[2]; z <= w->high[2]; z++)
        for (y = w->low[1]; y <= w->high[1]; y++)
            for (x = w->low[0]; x <= w->high[0]; x++) {
                int32_t const cell = coat_cell(grid, x, y, z);
                if (cell < 0) continue;
                best->cells++;
                for (k = grid->start[cell]; k < grid->start[cell + 1]; k++)
                    coat_test(bodies, grid->order[k] / grid->spans, ray, best);
            }
}

DEM_FN coat_hit coat_by_grid(const ugrid *grid, const dem_bodies *bodies, int32_t reach,
                             const dem_real *ray)
{
    coat_hit best = coat_no_hit();
    coat_walk w;
    int axis;
    if (!coat_enter(grid, ray, reach, &w)) return best;
    do {
        coat_look(grid, bodies, ray, &w, &best);
        if (best.t <= coat_leaves(grid, ray, &w, &axis) || axis < 0) break;
    } while (coat_step(grid, ray, reach, axis, &w));
    return best;
}

#ifndef __CUDACC__ /* coating.cu has the walks above */
#include "coating_serial.h"

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

static void advance(void *user, int64_t steps)
{
    coat_serial *run = (coat_serial *)user;
    while (steps-- > 0) {
        step(run->coating->bed);
        if (coat_is_due(run->coating)) coat_burst(run);
    }
}

int main(int argc, char **argv)
{
    coat_options const o = coat_parse(argc, argv);
    coating c = coating_new(&o);
    coat_serial run = coat_serial_new(&c);
    coat_run(&c, advance, &run);
    if (o.time) coat_print_times(&run);
    coat_serial_free(&run);
    return 0;
}
#endif
