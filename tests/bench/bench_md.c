/* bench_md.c - neighbour lists of a Lennard-Jones fluid with explicit ghosts: nlist.h against the
   cell list that MD codes have.
   SPDX-License-Identifier: MIT OR Unlicense

   32,000 atoms at density 0.8442 (a melt on a shaken lattice), cutoff 2.5 and skin 0.3; copies of
   the atoms within 2.8 of a face stand beside the box, as ghosts. The peer is the build that MD
   codes have had since Verlet and Hockney: bins of half a cutoff,
   a stencil of those that can hold a partner, and for each atom one loop over the atoms of those
   bins, into a table of fixed width.
   Half lists hold the pair of two atoms in the row of the lower number, that of an atom and a ghost
   in the row of the atom.
   Both sides build their bins or grid, then the list; the builds alternate, and the ratio is the
   median over the builds.

   cc -O3 -I. tests/bench/bench_md.c -o bench_md && ./bench_md [atoms per edge of the lattice, 20]
   [builds, 15]
   One line a table: both medians and the ratio. It ends with 1 if a row differs. */

#define UGRID_REAL double
#define NLIST_REAL double
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define NLIST_IMPLEMENTATION
#define NLIST_WITH_TUNE
#include "nlist.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 112, RUNS = 99 };

/* ---- the fluid ---- */

typedef struct fluid {
    double *x; /* [3 * n] atoms, then ghosts */
    int32_t atoms, n;
    double edge, cut;
} fluid;

static double shake(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0 - 0.5;
}

/* A copy of atom i, moved by whole edges along some axes, where it is within the cutoff of the box.
   */
static void add_ghosts(fluid *f, int32_t i)
{
    int image, a;
    for (image = 0; image < 27; image++) {
        int const step[3] = {image % 3 - 1, image / 3 % 3 - 1, image / 9 - 1};
        double q[3];
        int inside = image != 13;
        for (a = 0; a < 3; a++) {
            q[a] = f->x[3 * i + a] + step[a] * f->edge;
            inside &= q[a] >= -f->cut && q[a] < f->edge + f->cut;
        }
        if (inside) memcpy(f->x + 3 * (size_t)f->n++, q, sizeof q);
    }
}

static fluid make_fluid(int cells)
{
    static const double basis[4][3] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
    double const lattice = cbrt(4 / 0.8442);
    uint64_t state = 1;
    fluid f;
    int32_t i, k;
    int a;
    f.atoms = f.n = 4 * cells * cells * cells;
    f.edge = cells * lattice;
    f.cut = 2.8;
    f.x = (double *)malloc((size_t)f.n * 27 * 3 * sizeof *f.x);
    if (!f.x) exit(2);
    for (i = 0; i < f.atoms; i++) {
        int32_t const c = i / 4, at[3] = {c % cells, c / cells % cells, c / cells / cells};
        for (a = 0; a < 3; a++) {
            double const x = (at[a] + basis[i % 4][a] + 0.25 + 0.2 * shake(&state)) * lattice;
            f.x[3 * i + a] = x < f.edge ? x : x - f.edge;
        }
    }
    for (k = 0; k < f.atoms; k++) add_ghosts(&f, k);
    return f;
}

/* ---- the peer: bins and a stencil ---- */

typedef struct peer {
    int32_t along, bins, depth; /* bins along an edge, in all; atoms that a bin has room for */
    double per_bin;
    int32_t *count, *bin; /* [bins], [bins * depth] */
    int32_t stencil[1000], stencils;
    int32_t *length, *row; /* [atoms], [atoms * WIDTH] */
} peer;

static peer make_peer(const fluid *f)
{
    peer p;
    double width;
    int x, y, z, reach;
    p.along = (int)((f->edge + 2 * f->cut) / (f->cut / 2));
    p.per_bin = p.along / (f->edge + 2 * f->cut);
    p.bins = p.along * p.along * p.along;
    p.depth = 16;
    p.count = (int32_t *)malloc((size_t)p.bins * sizeof(int32_t));
    p.bin = (int32_t *)malloc((size_t)p.bins * (size_t)p.depth * sizeof(int32_t));
    p.length = (int32_t *)malloc((size_t)f->atoms * sizeof(int32_t));
    p.row = (int32_t *)malloc((size_t)f->atoms * WIDTH * sizeof(int32_t));
    if (!p.count || !p.bin || !p.length || !p.row) exit(2);
    width = 1 / p.per_bin;
    reach = (int)ceil(f->cut / width);
    p.stencils = 0;
    for (z = -reach; z <= reach; z++)
        for (y = -reach; y <= reach; y++)
            for (x = -reach; x <= reach; x++) {
                double const dx = (abs(x) > 1 ? abs(x) - 1 : 0) * width,
                             dy = (abs(y) > 1 ? abs(y) - 1 : 0) * width,
                             dz = (abs(z) > 1 ? abs(z) - 1 : 0) * width;
                if (dx * dx + dy * dy + dz * dz < f->cut * f->cut)
                    p.stencil[p.stencils++] = (z * p.along + y) * p.along + x;
            }
    return p;
}

static int32_t bin_of(const peer *p, const fluid *f, const double *x)
{
    int32_t at[3];
    int a;
    for (a = 0; a < 3; a++) {
        at[a] = (int32_t)((x[a] + f->cut) * p->per_bin);
        if (at[a] >= p->along) at[a] = p->along - 1;
    }
    return (at[2] * p->along + at[1]) * p->along + at[0];
}

static void fill_bins(peer *p, const fluid *f)
{
    int32_t i;
    memset(p->count, 0, (size_t)p->bins * sizeof *p->count);
    for (i = 0; i < f->n; i++) {
        int32_t const b = bin_of(p, f, f->x + 3 * i);
        if (p->count[b] == p->depth) exit(3);
        p->bin[b * p->depth + p->count[b]++] = i;
    }
}

static void build_peer(peer *p, const fluid *f, int half)
{
    double const limit = f->cut * f->cut;
    int32_t i, k, m;
    fill_bins(p, f);
    for (i = 0; i < f->atoms; i++) {
        double const x = f->x[3 * i], y = f->x[3 * i + 1], z = f->x[3 * i + 2];
        int32_t const own = bin_of(p, f, f->x + 3 * i);
        int32_t *const row = p->row + (size_t)i * WIDTH;
        int32_t length = 0;
        for (k = 0; k < p->stencils; k++) {
            int32_t const b = own + p->stencil[k];
            const int32_t *bin;
            if (b < 0 || b >= p->bins) continue;
            bin = p->bin + (size_t)b * (size_t)p->depth;
            for (m = 0; m < p->count[b]; m++) {
                int32_t const j = bin[m];
                double dx, dy, dz;
                if (half ? j <= i : j == i) continue;
                dx = f->x[3 * j] - x;
                dy = f->x[3 * j + 1] - y;
                dz = f->x[3 * j + 2] - z;
                if (dx * dx + dy * dy + dz * dz > limit) continue;
                if (length < WIDTH) row[length] = j;
                length++;
            }
        }
        p->length[i] = length;
        if (length > WIDTH) exit(3);
    }
}

/* ---- ours ---- */

static void build_ours(ugrid *grid, nlist *list, const fluid *f, int half, nlist_layout layout)
{
    ugrid_desc g;
    nlist_desc d;
    int a;
    memset(&g, 0, sizeof g);
    memset(&d, 0, sizeof d);
    for (a = 0; a < 3; a++) {
        g.min[a] = -f->cut;
        g.max[a] = f->edge + f->cut;
    }
    g.cell = half ? f->cut : f->cut / 2;
    d.radius = f->cut;
    d.half = half;
    d.rows = f->atoms;
    d.layout = layout;
    d.width = WIDTH;
    if (ugrid_build(grid, &g, f->x, 0, f->n) != UGRID_OK) exit(3);
    if (nlist_build_ugrid(list, &d, grid, f->x, 0, f->n) != NLIST_OK) exit(3);
}

/* ---- both, one after the other ---- */

static double cpu_ms(void) { return 1000.0 * (double)clock() / CLOCKS_PER_SEC; }

static int by_size(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int runs)
{
    qsort(t, (size_t)runs, sizeof *t, by_size);
    return t[runs / 2];
}

/* Each partner of the peer's row is in ours, and there are as many. */
static int same_rows(const peer *p, const nlist *list, int32_t atoms)
{
    int32_t i, k;
    for (i = 0; i < atoms; i++) {
        if (list->rows[list->current].count[i] != p->length[i]) return 0;
        for (k = 0; k < p->length[i]; k++)
            if (nlist_find(list, i, p->row[(size_t)i * WIDTH + (size_t)k]) < 0) return 0;
    }
    return 1;
}

static int compare(const fluid *f, peer *p, int half, nlist_layout layout, const char *name,
                   int runs)
{
    static double theirs[RUNS], ours[RUNS], ratio[RUNS];
    ugrid grid = {0};
    nlist list = {0};
    int run, same;
    for (run = -1; run < runs; run++) { /* the first one takes the memory */
        double const a = cpu_ms();
        double b, c;
        build_peer(p, f, half);
        b = cpu_ms();
        build_ours(&grid, &list, f, half, layout);
        c = cpu_ms();
        if (run < 0) continue;
        theirs[run] = b - a;
        ours[run] = c - b;
        ratio[run] = (c - b) / (b - a);
    }
    same = same_rows(p, &list, f->atoms);
    printf("%-4s %-8s cell list %7.2f ms   nlist %7.2f ms   ratio %.2f%s\n", half ? "half" : "full",
           name, median(theirs, runs), median(ours, runs), median(ratio, runs),
           same ? "" : "   ROWS DIFFER");
    nlist_free(&list);
    ugrid_free(&grid);
    return same;
}

int main(int argc, char **argv)
{
    int const given = argc > 1 ? atoi(argv[1]) : 0, asked = argc > 2 ? atoi(argv[2]) : 15;
    int const cells = given > 0 ? given : 20; /* options of the other benchmarks are ignored */
    int const runs = asked < 1 ? 1 : asked < RUNS ? asked : RUNS;
    fluid f;
    peer p;
    int half, same = 1;
    if (cells < 2 || cells > 100) return 2;
    f = make_fluid(cells);
    p = make_peer(&f);
    printf("%d atoms, %d ghosts, cutoff 2.5 + skin 0.3, double; medians of %d builds, one thread\n",
           f.atoms, f.n - f.atoms, runs);
    for (half = 1; half >= 0; half--) {
        same &= compare(&f, &p, half, NLIST_STATIC, "STATIC", runs);
        same &= compare(&f, &p, half, NLIST_COMPACT, "COMPACT", runs);
    }
    free(f.x);
    free(p.count);
    free(p.bin);
    free(p.length);
    free(p.row);
    return same ? 0 : 1;
}
