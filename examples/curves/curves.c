/* curves.c - cells in memory along rows, Morton's and Hilbert's curve: cache misses and time.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: a search around a particle reads 3 x 3 cells. If cells that are near are near in
   memory, too, more of them are still in the cache (source 000: Barbieri, section 1).

         rows            Morton          Hilbert       The order of 4 x 4 cells, from below.
     12 13 14 15      10 11 14 15       5  6  9 10     Morton: bits of x and y in turns. Quarters
      8  9 10 11       8  9 12 13       4  7  8 11     come one after the other, but not as
      4  5  6  7       2  3  6  7       3  2 13 12     neighbours. Hilbert: they are turned so that
      0  1  2  3       0  1  4  5       0  1 14 15     each begins beside the end of the last.

   A model of a cache counts the lines that it fetches. With rows it must hold three rows of cells
   to find a cell a second time, with the curves only a neighbourhood.

   Nevertheless rows are the default of ugrid.h: three cells in a row are one range of memory, a
   strip. 3 loops around a particle, not 9 shorter ones, save more time than the misses cost.

   How to run it:

       make build/curves && build/curves --cells 512       (from the top of the repository), or
       cc -O3 examples/curves/curves.c -o curves -lstb -lm

   What to look at: >>curves, >>memory and >>cache below; then the picture, build/curves.png. */

#define PROGRAM "curves"
#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"

#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"

enum { ROWS, MORTON, HILBERT, STRIPS, ORDERS }; /* STRIPS: rows, with cells joined */

/* -------------------------------------------------------------------------------------------------
   >>curves: a list of all cells of a square in the order of a curve. A cell is y * side + x.
   ---------------------------------------------------------------------------------------------- */

typedef struct curve {
    int32_t side, count;        /* cells along an axis; cells in the list so far */
    int32_t *cell;              /* [side * side] */
} curve;

/* A square of `size` cells along an axis, with `low` as its lowest cell: its four quarters. */
static void append_morton(curve *c, int32_t low, int32_t size)
{
    int32_t const half = size / 2;
    int k;
    if (size == 1) c->cell[c->count++] = low;
    else for (k = 0; k < 4; k++)
        append_morton(c, low + k % 2 * half + k / 2 * half * c->side, half);
}

/* A square that begins at one corner and ends at the next corner along u; v is the step along the
   other side (D. Hilbert 1891). Its quarters:
       2->3     1: along v, with u and v exchanged; 2 and 3: along u; 4: against v, and exchanged.
       1  4     So each begins beside the end of the last. */
static void append_hilbert(curve *c, int32_t first, int32_t u, int32_t v, int32_t size)
{
    int32_t const half = size / 2;
    if (size == 1) { c->cell[c->count++] = first; return; }
    append_hilbert(c, first, v, u, half);
    append_hilbert(c, first + half * v, u, v, half);
    append_hilbert(c, first + half * (u + v), u, v, half);
    append_hilbert(c, first + (size - 1) * u + (half - 1) * v, -v, -u, half);
}

static curve make_curve(int order, int32_t side)
{
    curve c = {0, 0, NULL};
    c.side = side;
    c.cell = (int32_t *)zeros((size_t)side * (size_t)side, sizeof *c.cell);
    if (order == MORTON) append_morton(&c, 0, side);
    else if (order == HILBERT) append_hilbert(&c, 0, 1, side, side);
    else for (; c.count < side * side; c.count++) c.cell[c.count] = c.count;
    return c;
}

/* -------------------------------------------------------------------------------------------------
   >>memory: the particles of a grid in the order of a curve, and a search through them
   ---------------------------------------------------------------------------------------------- */

typedef struct range { int32_t begin, end; } range; /* of places */

typedef struct layout {
    int order;
    curve along;
    range *places;              /* [cells] of each cell */
    ugrid_record *record;       /* [n] by place: x, y and the id as link */
    int64_t *sum;               /* [n] by place: of the ids of all neighbours */
    double lines, seconds;      /* fetched per particle; of a search, the shortest */
} layout;

/* grid: in rows. Cell after cell its particles are copied to where the curve has them. */
static layout make_layout(const ugrid *grid, int order)
{
    layout l;
    int32_t k, place = 0;
    memset(&l, 0, sizeof l);
    l.order = order;
    l.along = make_curve(order, grid->axis[0].cells);
    l.places = (range *)zeros((size_t)grid->cell_count, sizeof *l.places);
    l.record = (ugrid_record *)zeros((size_t)grid->n, sizeof *l.record);
    l.sum = (int64_t *)zeros((size_t)grid->n, sizeof *l.sum);
    for (k = 0; k < grid->cell_count; k++) {
        int32_t const cell = l.along.cell[k];
        int32_t from = grid->start[cell];
        l.places[cell].begin = place;
        while (from < grid->start[cell + 1]) l.record[place++] = grid->record[from++];
        l.places[cell].end = place;
    }
    return l;
}

/* The ranges of places in the 3 x 3 cells around a cell. Returns how many: up to 3 or 9. */
static int ranges_near(const layout *l, int32_t cell, range *near)
{
    int32_t const side = l->along.side, x = cell % side, y = cell / side;
    int32_t const low = x > 0 ? x - 1 : x, high = x < side - 1 ? x + 1 : x;
    int32_t u, v;
    int count = 0;
    for (v = y > 0 ? y - 1 : y; v <= (y < side - 1 ? y + 1 : y); v++) {
        const range *row = l->places + v * side;
        for (u = low; u <= high; u++)
            if (l->order == STRIPS && u > low) near[count - 1].end = row[u].end;
            else near[count++] = row[u];
    }
    return count;
}

/* Of the ids of all others within the edge of a cell. */
static int64_t sum_near(const layout *l, const range *near, int count, int32_t i)
{
    const ugrid_record *p = &l->record[i];
    float const radius = 1.0f / (float)l->along.side;
    int64_t sum = -p->link;     /* it finds itself, too */
    int32_t j;
    int k;
    for (k = 0; k < count; k++)
        for (j = near[k].begin; j < near[k].end; j++) {
            float const x = l->record[j].x[0] - p->x[0], y = l->record[j].x[1] - p->x[1];
            sum += x * x + y * y <= radius * radius ? l->record[j].link : 0;
        }
    return sum;
}

static void search(layout *l)
{
    range near[9];
    int32_t k, i;
    for (k = 0; k < l->along.count; k++) {
        range const own = l->places[l->along.cell[k]];
        int const count = ranges_near(l, l->along.cell[k], near);
        for (i = own.begin; i < own.end; i++) l->sum[i] = sum_near(l, near, count, i);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>cache: 32 KB in lines of 64 bytes. In its set of 8 a line replaces the least recently used.
   ---------------------------------------------------------------------------------------------- */

enum { SETS = 64, WAYS = 8, LINE = 64 };

typedef struct cache {
    int64_t line[SETS][WAYS];   /* the most recent first; 0: none */
    int64_t fetched;
} cache;

static void touch(cache *c, int64_t address, int64_t bytes)
{
    int64_t line, last = (address + bytes - 1) / LINE;
    int k;
    for (line = address / LINE; bytes > 0 && line <= last; line++) {
        int64_t *set = c->line[line % SETS];
        for (k = 0; k < WAYS - 1 && set[k] != line; k++) {}
        c->fetched += set[k] != line;
        for (; k > 0; k--) set[k] = set[k - 1];
        set[0] = line;
    }
}

/* What `search` reads of the records, from cell `first` of the curve to before `last`. */
static void touch_records(const layout *l, int32_t first, int32_t last, cache *c)
{
    range near[9];
    int32_t k, i;
    int r;
    for (k = first; k < last; k++) {
        range const own = l->places[l->along.cell[k]];
        int const count = ranges_near(l, l->along.cell[k], near);
        for (i = own.begin; i < own.end; i++)
            for (r = 0; r < count; r++)
                touch(c, LINE + near[r].begin * (int64_t)sizeof *l->record,
                      (near[r].end - near[r].begin) * (int64_t)sizeof *l->record);
    }
}

#include "curves_draw.h" /* the picture */
#include "curves_run.h"  /* options, table and checks */
