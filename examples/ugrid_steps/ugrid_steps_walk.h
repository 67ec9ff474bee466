/* ugrid_steps_walk.h - the walks of ugrid_steps.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef UGRID_STEPS_WALK_H
#define UGRID_STEPS_WALK_H

/* -------------------------------------------------------------------------------------------------
   >>walks: the ranges of ugrid_next_range around one point, in four orders

   A walk returns ranges of places, and none for cells without points. To see these cells, too, the
   program walks through a second grid that has one point in the middle of each cell: there, a
   range of places is a range of cells.
   ---------------------------------------------------------------------------------------------- */

static ugrid one_in_each_cell(const steps *s, ugrid_walk order)
{
    const ugrid_axis *a = s->sorted.axis;
    int32_t const dim = s->sorted.desc.dim;
    steps middles = *s;
    ugrid_real *pos = (ugrid_real *)zeros((size_t)(3 * s->cells), sizeof *pos);
    ugrid grid;
    int32_t c, k;
    for (c = 0; c < s->cells; c++) {
        int32_t const at[3] = {c % a[0].cells, c / a[0].cells % a[1].cells,
                               c / a[0].cells / a[1].cells};
        for (k = 0; k < dim; k++)
            pos[dim * c + k] = a[k].min + (a[k].max - a[k].min) *
                                              ((ugrid_real)at[k] + (ugrid_real)0.5) /
                                              (ugrid_real)a[k].cells;
    }
    middles.pos = pos;
    grid = build(&middles, UGRID_COUNT, order, s->cells);
    for (c = 0; c < s->cells; c++)
        if (grid.start[c] != c || grid.order[c] != c) stop(1, "no point in cell %ld", (long)c);
    free(pos);
    return grid;
}

/* The candidates at places begin .. end-1, and how far they are. Returns how many are hits. */
static int32_t show_candidates(const steps *s, int32_t begin, int32_t end)
{
    const ugrid_real *p = point_of(&s->sorted, s->query);
    int32_t place, hits = 0;
    for (place = begin; place < end; place++) {
        ugrid_real q[3], d2;
        int32_t const id = ugrid_id(&s->sorted, place);
        ugrid_point(&s->sorted, place, q);
        d2 = ugrid_distance2(&s->sorted, p, q);
        if (id == s->query) printf("  %ld (itself)", (long)id);
        else if (d2 <= s->radius * s->radius) {
            printf("  %ld (%.3f, hit)", (long)id, sqrt((double)d2));
            hits++;
        } else printf("  %ld (%.3f)", (long)id, sqrt((double)d2));
    }
    printf("\n");
    return hits;
}

/* One walk, turn by turn. */
static void show_walk(steps *s, ugrid_walk order, int32_t *turn)
{
    ugrid grid = build(s, UGRID_COUNT, order, s->n), middles = one_in_each_cell(s, order);
    const ugrid_real *p = point_of(&grid, s->query);
    ugrid_near ranges = ugrid_near_within(&grid, p, s->radius),
               cells = ugrid_near_within(&middles, p, s->radius);
    int32_t turns = 0, candidates = 0, c;
    printf("\n   %s\n   turn   cells    places  candidates\n", order_name[order - UGRID_CELLS]);
    for (c = 0; c < s->cells; c++) turn[c] = -1;
    for (s->hits = 0; ugrid_next_range(&cells); turns++) {
        int32_t const begin = s->sorted.start[cells.begin], end = s->sorted.start[cells.end];
        for (c = cells.begin; c < cells.end; c++) turn[c] = turns;
        printf("   %4ld  %2ld..%-2ld  ", (long)turns, (long)cells.begin, (long)cells.end - 1);
        if (begin < end) printf("%3ld..%-3ld", (long)begin, (long)end - 1);
        else printf("  empty");
        s->hits += show_candidates(s, begin, end);
        candidates += end - begin;
        if (begin < end && (!ugrid_next_range(&ranges) || ranges.begin != begin ||
                            ranges.end != end))
            stop(1, "the ranges of the two grids differ");
    }
    if (ugrid_next_range(&ranges)) stop(1, "the ranges of the two grids differ");
    printf("   %s: %ld turns, %ld candidates, %ld hits\n", order_name[order - UGRID_CELLS],
           (long)turns, (long)candidates, (long)s->hits);
    ugrid_free(&grid);
    ugrid_free(&middles);
}

static void show_walks(steps *s)
{
    const ugrid_real *p = point_of(&s->sorted, s->query);
    int32_t ids[MOST], found;
    int k;
    printf("\n6. Walks (source 001). Which points are within %g of point %ld, at %g %g %g in cell "
           "%ld?\n   Cells that are adjacent along x are one range of places, a strip. MODULAR"
           " and HYBRID\n   visit cells and strips by their coordinates modulo 3 (modulo 2 n + 1, "
           "where the\n   radius is up to n cells).\n",
           (double)s->radius, (long)s->query, (double)p[0], (double)p[1], (double)p[2],
           (long)ugrid_cell_at(&s->sorted, p));
    for (k = 0; k < ORDERS; k++) show_walk(s, (ugrid_walk)(UGRID_CELLS + k), s->turn[k]);
    MUST(ugrid, ugrid_query(&s->sorted, p, s->radius, ids, MOST, &found), "searching");
    printf("\n   ugrid_query finds %ld, itself among them.\n", (long)found);
    if (found != s->hits + 1) stop(1, "the walks and ugrid_query disagree");
}

#endif /* UGRID_STEPS_WALK_H */
