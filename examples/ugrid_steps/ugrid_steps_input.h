/* ugrid_steps_input.h - the options and points of ugrid_steps.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef UGRID_STEPS_INPUT_H
#define UGRID_STEPS_INPUT_H

typedef struct options {
    int32_t n, seed, dim, query;    /* n 0: a default; query -1: chosen */
    double cell, radius;            /* 0: chosen */
    int32_t vtk;                    /* flag */
    const char *points, *out;
} options;

static options parse(int argc, char **argv)
{
    options o = {0, 1, 2, -1, 0, 0, 0, NULL, "build/steps"};
    const option_line lines[] = {
        TEXT("--points", "FILE", &o.points,
             "your points: a line \"x y\" (--dim 3: \"x y z\") each"),
        INT("-n", "N", &o.n, 1, MOST, "random points (default: 10 chosen ones; --dim 3: 40)"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of the random points (default 1)"),
        INT("--dim", "D", &o.dim, 2, 3, "coordinates of a point, 2 or 3 (default 2)"),
        DOUBLE("--cell", "W", &o.cell, 1e-6, 1e6,
               "edge of a cell (default 1; of your points: about 2 of them in a cell)"),
        DOUBLE("--radius", "R", &o.radius, 1e-6, 1e6, "of the search (default: a cell's edge)"),
        INT("--query", "I", &o.query, 0, MOST - 1, "the point whose neighbours are searched for"),
        FLAG("--vtk", &o.vtk, "also occupancy_0000.vtk: points of each cell, for ParaView"),
        TEXT("--out", "DIR", &o.out,
             "where 1_build.png, 2_lists.png and 3_walks.png go (default build/steps)"),
        OPTIONS_END};
    options_read(argc, argv, lines, NULL,
                 "Builds a uniform grid over some points and shows each step, and a search.", NULL);
    if (o.points && o.n) stop(2, "--points and -n: one of them is enough");
    return o;
}

/* In the plane, the cells of these are those of the agents of Chisholm's figure. */
static const double ten[20] = {2.25, 1.25, 2.5,  2.5, 0.75, 1.5,  3.25, 1.75, 1.75, 3.125,
                               1.5,  1.5,  2.25, 0.5, 0.5,  3.75, 2.75, 1.75, 3.75, 1.25};

static ugrid_real *points_of_file(const options *o, int32_t *n)
{
    table t = table_read(o->points, o->dim, o->dim == 2 ? "two finite numbers x y"
                                                        : "three finite numbers x y z", "points");
    int32_t const numbers = t.rows * o->dim;
    ugrid_real *point = (ugrid_real *)zeros((size_t)numbers, sizeof *point);
    int32_t k;
    if (t.rows > MOST)
        stop(1, "%s: %ld points; at most %d can be shown", o->points, (long)t.rows, MOST);
    for (k = 0; k < numbers; k++) point[k] = (ugrid_real)t.value[k];
    *n = t.rows;
    table_free(&t);
    return point;
}

/* The points of the file, the ten, or random ones between 0 and 4, at odd multiples of 1/32:
   these are printed without rounding, and lie on no border of a cell. desc: of the grid. */
static ugrid_real *make_points(const options *o, ugrid_desc *desc, int32_t *n)
{
    uint64_t state = random_seed(o->seed);
    ugrid_real *point;
    int32_t a, k;
    desc->dim = o->dim;
    desc->cell = (ugrid_real)o->cell;
    if (o->points) return points_of_file(o, n);
    for (a = 0; a < o->dim; a++) desc->max[a] = 4;
    if (!(o->cell > 0)) desc->cell = 1;
    *n = o->n ? o->n : o->dim == 2 ? 10 : 40;
    point = (ugrid_real *)zeros((size_t)(*n * o->dim), sizeof *point);
    for (k = 0; k < *n * o->dim; k++)
        point[k] = (ugrid_real)(!o->n && o->dim == 2 ? ten[k]
                                                     : (2 * random_below(&state, 64) + 1) / 32.0);
    return point;
}

/* The point to search around: as asked for, or the nearest to the middle of the box. */
static int32_t choose_query(const options *o, const ugrid *grid)
{
    ugrid_real middle_of_box[3];
    int32_t id, best = 0;
    int a;
    if (o->query >= grid->n)
        stop(2, "--query %ld: the last of %ld points is %ld", (long)o->query, (long)grid->n,
             (long)grid->n - 1);
    if (o->query >= 0) return o->query;
    if (!o->points && !o->n && o->dim == 2) return 1; /* its cells differ in all orders */
    for (a = 0; a < 3; a++)
        middle_of_box[a] = (grid->axis[a].min + grid->axis[a].max) / 2;
    for (id = 1; id < grid->n; id++)
        if (ugrid_distance2(grid, point_of(grid, id), middle_of_box) <
            ugrid_distance2(grid, point_of(grid, best), middle_of_box))
            best = id;
    return best;
}

#endif /* UGRID_STEPS_INPUT_H */
