/* how_grid.h - the arrays of a uniform grid and the strips of a search, by ugrid.h, for how.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef HOW_GRID_H
#define HOW_GRID_H

enum { GRID_WIDE = 6, GRID_HIGH = 4, GRID_CELLS = GRID_WIDE * GRID_HIGH };

static struct grid_steps {
    ugrid grid;
    int32_t cell[HOW_MOST];     /* of each point */
    int32_t size[2];            /* cells along x and y */
    /* of each strip of the search, also an empty one: first cell, cells, places begin .. end-1 */
    int32_t first[GRID_CELLS], cells[GRID_CELLS], begin[GRID_CELLS], end[GRID_CELLS];
    int32_t hit[HOW_MOST];      /* ids, in the order in which the walk finds them */
} grid_steps;

/* ugrid_next_range without its filter of empty ranges. */
static int32_t grid_strips(void)
{
    struct grid_steps *s = &grid_steps;
    ugrid_near walk = ugrid_near_within(&s->grid, how.query, how.query[2]);
    int32_t k = 0;
    while (ugrid_i_next_cell(&walk)) {
        s->first[k] = walk.number;
        s->cells[k] = walk.x.width;
        s->begin[k] = s->grid.start[walk.number];
        s->end[k++] = s->grid.start[walk.number + walk.x.width];
    }
    return k;
}

static int32_t grid_hits(void)
{
    struct grid_steps *s = &grid_steps;
    ugrid_near walk = ugrid_near_within(&s->grid, how.query, how.query[2]);
    int32_t hits = 0;
    while (ugrid_next(&walk)) {
        const float *q = how.pos + 2 * walk.id;
        if (ugrid_distance2(&s->grid, how.query, q) <= how.query[2] * how.query[2])
            s->hit[hits++] = walk.id;
    }
    return hits;
}

static const char *grid_make(int32_t n)
{
    struct grid_steps *s = &grid_steps;
    ugrid_desc desc;
    ugrid_result result;
    int32_t i, strips;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.max[0] = GRID_WIDE;
    desc.max[1] = GRID_HIGH;
    desc.cell = 1;
    desc.method = UGRID_COUNT;
    desc.walk = UGRID_STRIPS;
    desc.inverse = 1;
    result = ugrid_build(&s->grid, &desc, how.pos, 0, n);
    if (result != UGRID_OK) return ugrid_result_text(result);
    for (i = 0; i < n; i++) s->cell[i] = ugrid_cell_at(&s->grid, how.pos + 2 * i);
    s->size[0] = s->grid.axis[0].cells;
    s->size[1] = s->grid.axis[1].cells;
    strips = grid_strips();
    how_ints("size", s->size, 2);
    how_ints("cell", s->cell, n);
    how_ints("start", s->grid.start, s->grid.cell_count + 1);
    how_ints("order", s->grid.order, n);
    how_ints("inverse", s->grid.inverse, n);
    how_ints("strip_first", s->first, strips);
    how_ints("strip_cells", s->cells, strips);
    how_ints("strip_begin", s->begin, strips);
    how_ints("strip_end", s->end, strips);
    how_ints("hit", s->hit, grid_hits());
    return NULL;
}

#endif /* HOW_GRID_H */
