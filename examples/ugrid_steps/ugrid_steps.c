/* ugrid_steps.c - how a uniform grid is made and searched, step by step, on a few points.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: everything that ugrid.h does between an array of points and the neighbours of
   one of them, printed and drawn:

       1. cells     the number of the cell that each point lies in,
       2. counting  points of each cell,
       3. prefix    the inclusive prefix sum of the counts: where each cell ends,
       4. scatter   from the last point to the first: each end counts down to its start,
       5. lists     the other way: a linked list for each cell (source 000, Figure 1),
       6. walks     the cells around a point, one by one, as strips, by their coordinates modulo 3,
                    and both (source 001).

   The program reads the arrays of grids that ugrid_build made.

   How to run it:

       make build/ugrid_steps && build/ugrid_steps     (from the top of the repository), or
       cc -O3 examples/ugrid_steps/ugrid_steps.c -o ugrid_steps -lstb -lm
       ./ugrid_steps -n 20 --seed 5 --radius 1.5
       ./ugrid_steps --dim 3                           9 strips instead of 27 cells
       ./ugrid_steps --points FILE --query 3           your own points

   What to look at: >>counting and >>lists below, >>walks in ugrid_steps_walk.h;
   ugrid_steps_draw.h draws them.

   The default points lie in the cells 2 4 5 6 6 7 7 10 12 13 of 16: the agents in the figure of
   source 001, so `start` is its "Cell Data Start ID". Sources: 000 Barbieri, 001 Chisholm (cited
   in ugrid.h). */

#define PROGRAM "ugrid_steps"
#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/table.h"

#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"

enum { MOST = 64, ORDERS = 4 }; /* points and cells; orders of a walk */
static const char *const order_name[ORDERS] = {"CELLS", "STRIPS", "MODULAR", "HYBRID"};

typedef struct steps {
    ugrid sorted;       /* UGRID_COUNT: start, order, inverse, record */
    ugrid fixed;        /* UGRID_FIXED: count, slot */
    const ugrid_real *pos;
    int32_t n, cells, query;
    ugrid_real radius;
    int32_t turn[ORDERS][MOST]; /* by cell: when a walk visits it, or -1 */
    int32_t hits;
} steps;

/* Coordinates of a point, 3 numbers. */
static const ugrid_real *point_of(const ugrid *grid, int32_t id)
{
    return grid->record[grid->inverse[id]].x;
}

#include "ugrid_steps_input.h"

static ugrid build(const steps *s, ugrid_method method, ugrid_walk order, int32_t n)
{
    ugrid grid;
    ugrid_desc desc = s->sorted.desc;
    memset(&grid, 0, sizeof grid);
    desc.method = method;
    desc.walk = order;
    desc.inverse = method == UGRID_COUNT;
    desc.slots = MOST;
    MUST(ugrid, ugrid_build(&grid, &desc, s->pos, 0, n), "building the grid");
    return grid;
}

/* -------------------------------------------------------------------------------------------------
   >>counting: cells, counts, prefix sum, scatter
   ---------------------------------------------------------------------------------------------- */

static void show_cells(const steps *s)
{
    const ugrid_axis *a = s->sorted.axis;
    int32_t id;
    printf("1. Cells. The box from %g %g %g to %g %g %g has %ld x %ld x %ld cells; cell x y z has\n"
           "   the number (z * cells_y + y) * cells_x + x.\n\n",
           (double)a[0].min, (double)a[1].min, (double)a[2].min, (double)a[0].max,
           (double)a[1].max, (double)a[2].max, (long)a[0].cells, (long)a[1].cells,
           (long)a[2].cells);
    printf("   id          x          y          z   cell\n");
    for (id = 0; id < s->n; id++) {
        const ugrid_real *p = point_of(&s->sorted, id);
        printf("   %2ld %10g %10g %10g   %4ld\n", (long)id, (double)p[0], (double)p[1],
               (double)p[2], (long)ugrid_cell_at(&s->sorted, p));
    }
}

/* The slot of a point in its cell: what the counter was when the point added 1 to it. */
static int32_t rank_of(const steps *s, int32_t id)
{
    int32_t const cell = ugrid_cell_at(&s->sorted, point_of(&s->sorted, id));
    int32_t rank = 0;
    while (s->fixed.slot[rank * s->cells + cell] != id) rank++;
    return rank;
}

/* Each cell's end is where the scatter begins, and its start is what the scatter leaves. */
static void show_counting(const steps *s)
{
    int32_t c;
    printf("\n2. Counting. Each point adds 1 to the counter of its cell. (On a GPU by\n"
           "   atomicAdd: what the counter was is the point's rank. UGRID_FIXED: its slot.)\n"
           "3. Prefix sum. A count becomes the end of its cell: the points in all cells up to it.\n"
           "   The start of a cell is the end of the one before.\n\n"
           "   cell  count    end  start\n");
    for (c = 0; c < s->cells; c++)
        printf("   %4ld  %5ld  %5ld  %5ld\n", (long)c, (long)s->fixed.count[c],
               (long)s->sorted.start[c + 1], (long)s->sorted.start[c]);
    printf("    all         %5ld\n", (long)s->sorted.start[s->cells]);
}

static void show_scatter(const steps *s)
{
    int32_t end[MOST], c, id;
    memcpy(end, s->sorted.start + 1, (size_t)s->cells * sizeof *end);
    printf("\n4. Scatter, from the last point to the first. A point takes the place before the\n"
           "   end of its cell, and this is the end from now on. So ids ascend in a cell, and\n"
           "   every end becomes a start. (On a GPU all points at once: place = start + rank.)\n\n"
           "   id  cell    end - 1 = place   start + rank\n");
    for (id = s->n - 1; id >= 0; id--) {
        int32_t const cell = ugrid_cell_at(&s->sorted, point_of(&s->sorted, id));
        int32_t const start = s->sorted.start[cell], rank = rank_of(s, id), place = --end[cell];
        printf("   %2ld  %4ld  %5ld - 1 = %5ld   %5ld + %4ld\n", (long)id, (long)cell,
               (long)place + 1, (long)place, (long)start, (long)rank);
        if (place != s->sorted.inverse[id] || place != start + rank)
            stop(1, "point %ld has another place", (long)id);
    }
    printf("\n   Records in the order of their places: points of a cell are one range.\n\n"
           "   place  id          x          y          z\n");
    for (c = 0; c < s->n; c++) {
        const ugrid_record *r = &s->sorted.record[c];
        printf("   %5ld  %2ld %10g %10g %10g\n", (long)c, (long)r->link, (double)r->x[0],
               (double)r->x[1], (double)r->x[2]);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>lists: head and next, after each point (source 000, Figure 1: cellHead and cellNext)
   ---------------------------------------------------------------------------------------------- */

static void show_lists(const steps *s)
{
    int32_t k, c, id;
    printf("\n5. Lists (source 000, Figure 1). A point takes the head of its cell as its next,\n"
           "   and becomes the head (on a GPU by one atomicExch). -1: none.\n\n");
    for (k = 1; k <= s->n; k++) {
        ugrid list = build(s, UGRID_LIST, UGRID_CELLS, k);
        c = ugrid_cell_at(&list, s->pos + (k - 1) * list.desc.dim);
        printf("   id %2ld into cell %2ld: next[%ld] = %ld, head[%ld] = %ld\n", (long)k - 1,
               (long)c, (long)k - 1, (long)list.next[k - 1], (long)c, (long)list.head[c]);
        for (c = 0; k == s->n && c < s->cells; c++) {
            printf(c ? "   list of cell %2ld:" : "\n   list of cell %2ld:", (long)c);
            for (id = list.head[c]; id >= 0; id = list.next[id]) printf(" %ld", (long)id);
            printf("\n");
        }
        ugrid_free(&list);
    }
}

#include "ugrid_steps_walk.h"
#include "ugrid_steps_draw.h"

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    ugrid_real *point;
    steps s;
    memset(&s, 0, sizeof s);
    s.pos = point = make_points(&o, &s.sorted.desc, &s.n);
    MUST(ugrid, ugrid_fit(&s.sorted.desc, point, 0, s.n, NULL), "choosing box and cells");
    s.sorted = build(&s, UGRID_COUNT, UGRID_WALK_AUTO, s.n);
    s.cells = s.sorted.cell_count;
    if (s.cells > MOST)
        stop(2, "%ld cells; at most %d can be shown: a larger --cell", (long)s.cells, MOST);
    s.fixed = build(&s, UGRID_FIXED, UGRID_CELLS, s.n);
    s.query = choose_query(&o, &s.sorted);
    s.radius = o.radius > 0 ? (ugrid_real)o.radius : s.sorted.desc.cell;
    show_cells(&s);
    show_counting(&s);
    show_scatter(&s);
    show_lists(&s);
    show_walks(&s);
    write_pictures(&s, o.out);
    if (o.vtk) write_occupancy(&s, o.out);
    printf("\nPictures: 1_build.png, 2_lists.png, 3_walks.png in %s\n", o.out);
    printf("figures: n %ld cells %ld query %ld hits %ld\n", (long)s.n, (long)s.cells,
           (long)s.query, (long)s.hits);
    ugrid_free(&s.sorted);
    ugrid_free(&s.fixed);
    free(point);
    return 0;
}
