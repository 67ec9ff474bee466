/* curves_run.h - options, table and checks of curves.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef CURVES_RUN_H
#define CURVES_RUN_H

#include "../common/progress.h"

typedef struct options {
    int32_t n, cells, seed, rounds, list; /* n 0: four for each cell */
    const char *out;
} options;

static options parse(int argc, char **argv)
{
    options o = {0, 512, 1, 5, 0, "build/curves.png"};
    const option_line lines[] = {
        INT("-n", "N", &o.n, 1, 1e8, "particles (default: 4 for each cell)"),
        INT("--cells", "C", &o.cells, 2, 4096, "along each axis, a power of two (default 512)"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of the random positions (default 1)"),
        INT("--rounds", "N", &o.rounds, 1, 1000, "of timing, in turns; the shortest counts (5)"),
        FLAG("--list", &o.list, "print all cells along each curve, and all particles with sums"),
        TEXT("--out", "FILE", &o.out, "the picture (default build/curves.png)"), OPTIONS_END};
    options_read(argc, argv, lines, NULL,
                 "Sorts particles along rows, Morton's and Hilbert's curve, and searches.", NULL);
    if (o.cells & (o.cells - 1)) stop(2, "--cells %d: a power of two is needed", (int)o.cells);
    if (!o.n) o.n = 4 * o.cells * o.cells;
    return o;
}

static ugrid build_grid(const options *o, const float *pos, ugrid_cell_order order)
{
    ugrid grid;
    ugrid_desc desc;
    memset(&grid, 0, sizeof grid);
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.method = UGRID_COUNT;
    desc.cell_order = order;
    desc.max[0] = desc.max[1] = 1;
    desc.cell = 1.0f / (float)o->cells;
    MUST(ugrid, ugrid_build(&grid, &desc, pos, 0, o->n), "building the grid");
    return grid;
}

/* ugrid.h has Morton's curve, too: the same order. */
static void check_morton(const options *o, const float *pos, const layout *l)
{
    ugrid grid = build_grid(o, pos, UGRID_MORTON);
    int32_t k;
    for (k = 0; k < o->n; k++)
        if (grid.order[k] != l->record[k].link) stop(1, "place %d is not that of ugrid.h", (int)k);
    ugrid_free(&grid);
}

/* Sums by id, to compare the orders. */
static int64_t *sums_by_id(const layout *l, int32_t n)
{
    int64_t *sum = (int64_t *)zeros((size_t)n, sizeof *sum);
    int32_t k;
    for (k = 0; k < n; k++) sum[l->record[k].link] = l->sum[k];
    return sum;
}

static void check_sums(const layout *l, int32_t n)
{
    int64_t *const expected = sums_by_id(&l[ROWS], n);
    int order;
    for (order = MORTON; order < ORDERS; order++) {
        int64_t *const found = sums_by_id(&l[order], n);
        if (memcmp(found, expected, (size_t)n * sizeof *found) != 0)
            stop(1, "%s: other sums than by rows", order_name[order]);
        free(found);
    }
    free(expected);
}

static void print_list(const layout *l, const float *pos, int32_t n)
{
    int64_t *sum[ORDERS];
    int32_t k;
    int order;
    for (order = 0; order < ORDERS; order++) sum[order] = sums_by_id(&l[order], n);
    for (order = 0; order < CURVES; order++)
        for (k = 0; k < l[order].along.count; k++)
            printf("cell %s %d at %d %d\n", order_name[order], (int)k,
                   (int)(l[order].along.cell[k] % l[order].along.side),
                   (int)(l[order].along.cell[k] / l[order].along.side));
    for (k = 0; k < n; k++) {
        printf("particle %d at %.9g %.9g sums", (int)k, (double)pos[2 * k],
               (double)pos[2 * k + 1]);
        for (order = 0; order < ORDERS; order++) printf(" %lld", (long long)sum[order][k]);
        printf("\n");
    }
    for (order = 0; order < ORDERS; order++) free(sum[order]);
}

/* The model of the cache, and what it holds when the middle cell has searched. */
static void count_lines(layout *l, int32_t n, picture *page)
{
    int32_t const now = middle_cell(l->along.side);
    int32_t k = 0;
    cache then, c;
    memset(&c, 0, sizeof c);
    while (l->along.cell[k] != now) k++;
    touch_records(l, 0, k + 1, &c);
    then = c;
    touch_records(l, k + 1, l->along.count, &c);
    l->lines = (double)c.fetched / n;
    if (l->order < CURVES) draw_held(page, l, &then);
}

/* In turns, since the speed of a machine changes. */
static void measure(layout *l, int rounds)
{
    progress bar = progress_begin("turn");
    int round, order;
    for (round = 0; round < rounds; round++)
        for (order = 0; order < ORDERS; order++) {
            double seconds = -processor_seconds();
            search(&l[order]);
            seconds += processor_seconds();
            if (round == 0 || seconds < l[order].seconds) l[order].seconds = seconds;
            progress_show(&bar, round * ORDERS + order + 1, (int64_t)rounds * ORDERS, "");
        }
}

static void print_table(const layout *l, const options *o)
{
    int32_t const drawn = o->cells < SHOWN ? o->cells : SHOWN,
                  seen = o->cells < AROUND ? o->cells : AROUND;
    int order;
    printf("%d x %d cells, %d particles; neighbours within the edge of a cell\n\n", (int)o->cells,
           (int)o->cells, (int)o->n);
    printf("%-14s %34s %18s\n", "order", "cache lines fetched, per particle", "sums, ms (least)");
    for (order = 0; order < ORDERS; order++)
        printf("%-14s %34.3f %18.2f\n", order_name[order], l[order].lines, 1e3 * l[order].seconds);
    puts("\nstrips: cells beside each other in a row are one range of memory, 3 ranges for 9 cells."
         "\nNo other order has them: so rows are the default of ugrid.h.");
    printf("picture: %s\n   above: the curves through %d x %d cells; below: %d x %d of the %d x %d"
           " cells\n", o->out, (int)drawn, (int)drawn, (int)seen, (int)seen, (int)o->cells,
           (int)o->cells);
    printf("figures: rows %.4f Morton %.4f Hilbert %.4f strips %.4f\n", l[ROWS].lines,
           l[MORTON].lines, l[HILBERT].lines, l[STRIPS].lines);
}

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    uint64_t state = random_seed(o.seed);
    float *pos = (float *)zeros(2 * (size_t)o.n, sizeof *pos);
    picture page = new_page(o.cells);
    layout l[ORDERS];
    ugrid grid;
    int32_t k;
    for (k = 0; k < 2 * o.n; k++) pos[k] = random_float(&state);
    grid = build_grid(&o, pos, UGRID_ROWS);
    for (k = 0; k < ORDERS; k++) {
        l[k] = make_layout(&grid, (int)k);
        count_lines(&l[k], o.n, &page);
    }
    check_morton(&o, pos, &l[MORTON]);
    measure(l, (int)o.rounds);
    check_sums(l, o.n);
    picture_save_halved(&page, o.out);
    if (o.list) print_list(l, pos, o.n);
    print_table(l, &o);
    for (k = 0; k < ORDERS; k++) {
        free(l[k].along.cell);
        free(l[k].places);
        free(l[k].record);
        free(l[k].sum);
    }
    ugrid_free(&grid);
    free(pos);
    return 0;
}

#endif /* CURVES_RUN_H */
