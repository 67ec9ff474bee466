/* bits.c - what the four headers compute, as one line per case: a name and a hash. Two machines
   that keep the promise of equal bits print the same lines (tests/quality/portability/run.sh
   compares them).
   SPDX-License-Identifier: MIT OR Unlicense

       cc -std=c99 -O2 -I. tests/quality/portability/bits.c -o bits -lm
       bits                    all cases
       bits quick              a third of the cases, and smaller ones: seconds in an emulator
       bits ugrid|lbvh|nlist|nbody|limits|malloc        one part
       bits save FOLDER        writes saved trees and lists into FOLDER
       bits load FOLDER        loads them: a hash of their contents, or the code of the refusal

   Hashes are taken of values, number by number, never of memory as it lies. Inputs are made of
   integers, and are exact: no processor can round them in its own way. A line that begins with "ok"
   or "bad" says what was checked on the spot. UGRID_REAL, LBVH_REAL, NLIST_REAL and NBODY_REAL must
   be the same. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_SETS
#define NBODY_WITH_PERIODIC
#define NBODY_WITH_VORTEX
#define NBODY_WITH_FUNCTION
#define NBODY_IMPLEMENTATION
#include "nbody.h"

typedef ugrid_real real;
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* ------------------------------------------------------------------------------------------------
   Hashes
   ---------------------------------------------------------------------------------------------- */

static uint64_t sum;
static char name[160];
static int bad;

/* FNV-1a with words in the place of bytes (eight times as fast, which an emulated processor needs),
   and the upper half mixed down. */
static void put(uint64_t value)
{
    sum = (sum ^ value) * 1099511628211u;
    sum ^= sum >> 32;
}

static void put_int(int64_t value) { put((uint64_t)value); }

/* A float as a double: the same number. All NaN are one; found by bits, as comparisons mean nothing
   under -ffast-math. */
static void put_number(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u) bits = 0x7FF8000000000000u;
    put(bits);
}

/* NaN, or infinity; by bits, too. */
static real special(int nan)
{
    uint64_t const bits = (uint64_t)0x7FF << 52 | (uint64_t)nan << 51;
    double number;
    memcpy(&number, &bits, sizeof number);
    return (real)number;
}

/* x as a number of its own: a sum of sums that the compiler may not reorder. */
static real rounded(real x)
{
    volatile real number = x;
    return number;
}

static void put_ints(const int32_t *value, int64_t n)
{
    int64_t k;
    put_int(n);
    for (k = 0; k < n; k++) put_int(value[k]);
}

static void put_longs(const int64_t *value, int64_t n)
{
    int64_t k;
    put_int(n);
    for (k = 0; k < n; k++) put_int(value[k]);
}

static void put_numbers(const real *value, int64_t n)
{
    int64_t k;
    put_int(n);
    for (k = 0; k < n; k++) put_number((double)value[k]);
}

static void begin(void) { sum = 14695981039346656037u; }

/* The line of a case; `part` is appended to its name. Begins the next one. */
static void line(const char *part)
{
    printf("%s %s %08lx%08lx\n", name, part, (unsigned long)(sum >> 32),
           (unsigned long)(sum & 0xFFFFFFFFu));
    begin();
}

static void check(const char *what, int holds)
{
    if (holds) return;
    printf("bad %s %s\n", name, what);
    bad++;
}

static void out_of_memory(void)
{
    puts("bad out of memory");
    exit(3);
}

static void *take(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) out_of_memory();
    return memory;
}

/* ------------------------------------------------------------------------------------------------
   How much
   ---------------------------------------------------------------------------------------------- */

static int quick, counter;

static int sized(int n) { return quick ? n / 3 : n; }

/* Is it the turn of this case? A third of them, mixed. */
static int chosen(void) { return ((uint32_t)counter++ * 2654435761u >> 16) % 3 == 0 || !quick; }

/* ------------------------------------------------------------------------------------------------
   Inputs: all exact
   ---------------------------------------------------------------------------------------------- */

static uint64_t state;

static void seed(uint64_t s) { state = 0x9E3779B97F4A7C15u * (s + 1); }

static uint64_t draw(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Du;
}

static uint32_t below(uint32_t n) { return (uint32_t)((draw() >> 32) * n >> 32); }

static double power_of_two(int e)
{
    double p = 1;
    for (; e > 0; e--) p *= 2;
    for (; e < 0; e++) p /= 2;
    return p;
}

/* Digits of a real, and k of them as a number in 0 .. 1. */
#define DIGITS (UGRID_I_REAL_KIND == 1 ? 24 : 53)
static real fraction(uint64_t k) { return (real)((double)k * power_of_two(-DIGITS)); }
static real unit(void) { return fraction(draw() >> (64 - DIGITS)); }

enum { UNIFORM, CLUSTERED, LATTICE, COINCIDENT, BORDER, SCALES, TINY, ONE, NONE, WORKLOADS };
static const char *const workload_name[] = {
    "uniform", "clustered", "lattice", "coincident", "border", "scales", "tiny", "one", "none"};

static int workload_size(int workload, int n)
{
    return workload == ONE ? 1 : workload == NONE ? 0 : workload == TINY ? 5 : sized(n);
}

/* n points in the unit cube (BORDER: some on its border and outside of it; SCALES: from 2^-126
   on). */
static void make_points(int workload, uint64_t s, int32_t n, int dim, real *out)
{
    int32_t i;
    int a;
    seed(s + 100 * (uint64_t)workload);
    for (i = 0; i < n; i++) {
        uint32_t const group = below(7);
        for (a = 0; a < dim; a++) {
            real *x = out + (size_t)dim * (size_t)i + a;
            uint64_t const k = draw() >> (64 - DIGITS), one = (uint64_t)1 << DIGITS;
            switch (workload) {
            case CLUSTERED:
                *x = fraction((k >> 5) + ((uint64_t)(group * group * 3 + (uint32_t)a * 5) % 31
                                          << (DIGITS - 5)));
                break;
            case LATTICE: *x = fraction((k >> (DIGITS - 3)) << (DIGITS - 3)); break;
            case COINCIDENT: *x = fraction(((uint64_t)group + 1 + (uint64_t)a) * 7654321u); break;
            case BORDER:
                switch (group) {
                case 0: *x = 0; break;
                case 1: *x = 1; break;
                case 2: *x = fraction(one - 1); break;
                case 3: *x = -fraction(k); break;
                case 4: *x = 1 + fraction(k >> 2 << 2); break;
                default: *x = fraction(k); break;
                }
                break;
            case SCALES: *x = (real)((double)fraction(k) * power_of_two(-(int)below(100))); break;
            default: *x = fraction(k); break;
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   ugrid.h
   ---------------------------------------------------------------------------------------------- */

typedef struct grid_option { const char *text; ugrid_desc desc; } grid_option;

static void put_grid(const ugrid *grid)
{
    int32_t c;
    int a;
    put_int(grid->desc.method);
    put_int(grid->desc.walk);
    put_int(grid->n);
    put_int(grid->cell_count);
    put_int(grid->entries);
    put_int(grid->spans);
    put_int(grid->needed_cells);
    put_int(grid->needed_slots);
    put_number((double)grid->desc.cell);
    put_number((double)grid->tight_half);
    for (a = 0; a < 3; a++) {
        const ugrid_axis *axis = &grid->axis[a];
        real const numbers[7] = {axis->min,      axis->max,  axis->length, axis->half,
                                 axis->per_cell, axis->last, axis->margin};
        put_numbers(numbers, 7);
        put_int(axis->cells);
        put_int(axis->span);
    }
    if (grid->n == 0) return;
    if (grid->start) put_ints(grid->start, (int64_t)grid->cell_count + 1);
    if (grid->order) put_ints(grid->order, grid->entries);
    if (grid->inverse) put_ints(grid->inverse, grid->n);
    for (c = 0; c < grid->n && grid->record; c++) {
        put_numbers(grid->record[c].x, 3);
        put_int(grid->record[c].link);
    }
    if (grid->head) put_ints(grid->head, grid->cell_count);
    if (grid->count) put_ints(grid->count, grid->cell_count);
    for (c = 0; c < grid->cell_count && grid->slot; c++) {
        int32_t s;
        for (s = 0; s < grid->count[c]; s++)
            put_int(grid->slot[grid->desc.slot_layout == UGRID_SLOTS_BY_ROW
                                   ? (int64_t)c * grid->desc.slots + s
                                   : (int64_t)s * grid->cell_count + c]);
    }
    for (c = 0; c < grid->cell_count && grid->next; c++) {
        int32_t e;
        for (e = grid->head[c]; e >= 0; e = grid->next[e]) put_int(e);
        put_int(-1);
    }
}

static int put_pair(void *user, int32_t i, int32_t j)
{
    (void)user;
    put_int(i);
    put_int(j);
    return 0;
}

static void put_searches(const ugrid *grid, int dim, real radius)
{
    int32_t const n = grid->n, m = 40;
    int64_t *offsets = (int64_t *)take(((size_t)n + (size_t)m + 1) * sizeof *offsets), needed = 0,
            pairs = 0;
    int32_t *counts = (int32_t *)take(((size_t)n + 1) * sizeof *counts), *ids, found, q;
    real points[3 * 40], *sums, *values;
    int flags, a;
    for (flags = 0; flags < 4; flags++) {
        ugrid_result r = ugrid_neighbors(grid, radius, flags, offsets, NULL, 0, &needed);
        check("count only", r == UGRID_OK || r == UGRID_BUFFER_TOO_SMALL);
        ids = (int32_t *)take(((size_t)needed + 1) * sizeof *ids);
        check("neighbors",
              ugrid_neighbors(grid, radius, flags, offsets, ids, needed, &needed) == UGRID_OK);
        put_longs(offsets, (int64_t)n + 1);
        put_ints(ids, needed);
        check("counts", ugrid_count_neighbors(grid, radius, flags, counts) == UGRID_OK);
        put_ints(counts, n);
        for (q = 0; q < n; q++) check("count", counts[q] == offsets[q + 1] - offsets[q]);
        free(ids);
    }
    check("pairs", ugrid_count_pairs(grid, radius, &pairs) == UGRID_OK);
    put_int(pairs);
    check("each", ugrid_each_pair(grid, radius, UGRID_HALF, put_pair, NULL) == UGRID_OK);
    check("each", ugrid_each_pair(grid, radius, 0, put_pair, NULL) == UGRID_OK);
    for (q = 0; q < m * dim; q++) points[q] = unit();
    check("at", ugrid_neighbors_at(grid, points, 0, m, radius, offsets, NULL, 0, &needed) !=
                    UGRID_BAD_ARGUMENT);
    ids = (int32_t *)take(((size_t)needed + (size_t)n + 1) * sizeof *ids);
    check("at", ugrid_neighbors_at(grid, points, 0, m, radius, offsets, ids, needed, &needed) ==
                    UGRID_OK);
    put_longs(offsets, m + 1);
    put_ints(ids, needed);
    for (q = 0; q < 5; q++) {
        check("query", ugrid_query(grid, points + dim * q, radius, ids, n, &found) == UGRID_OK);
        put_ints(ids, found);
        put_int(ugrid_cell_at(grid, points + dim * q));
    }
    for (q = 0; q < n; q += 37) {
        real p[3], r[3], d[3];
        ugrid_point(grid, q, p);
        put_numbers(p, 3);
        ugrid_point(grid, n - 1 - q, r);
        put_number((double)ugrid_distance2(grid, p, r));
        ugrid_offset(grid, p, r, d);
        put_numbers(d, dim);
    }
    values = (real *)take(((size_t)n + 1) * 2 * sizeof *values);
    for (q = 0; q < 2 * n; q++) values[q] = unit();
    sums = (real *)take(((size_t)grid->cell_count + (size_t)n + 1) * 2 * sizeof *sums);
    check("cell sums", ugrid_cell_sums(grid, values, 2, sums) == UGRID_OK);
    for (a = 0; a < 2 * grid->cell_count; a++) if (sums[a] != 0) put_number((double)sums[a]);
    check("gather", ugrid_gather(grid, values, sizeof *values, sums) == UGRID_OK);
    put_numbers(sums, n);
    check("scatter", ugrid_scatter(grid, sums, sizeof *values, sums + n) == UGRID_OK &&
                         memcmp(sums + n, values, (size_t)n * sizeof *values) == 0);
    free(values);
    free(sums);
    free(ids);
    free(counts);
    free(offsets);
}

static void grid_case(int workload, int dim, int periodic, const grid_option *option, int32_t n,
                      real radius)
{
    ugrid grid = {0};
    ugrid_desc desc = option->desc;
    real *pos = (real *)take(((size_t)n + 1) * (size_t)dim * sizeof *pos);
    ugrid_result r;
    int a;
    snprintf(name, sizeof name, "ugrid %s %dD%s %s", workload_name[workload], dim,
             periodic ? " periodic" : "", option->text);
    desc.dim = dim;
    for (a = 0; a < dim && !desc.unbounded && desc.cell >= 0; a++) {
        desc.max[a] = 1;
        desc.periodic[a] = periodic && a != 1;
    }
    if (desc.cell < 0) desc.cell = 0;
    else if (desc.cell == 0) desc.cell = (real)0.1;
    make_points(workload, (uint64_t)dim, n, dim, pos);
    begin();
    r = ugrid_build(&grid, &desc, pos, 0, n);
    put_int(r);
    put_grid(&grid);
    line("grid");
    check("validate", r != UGRID_OK || n == 0 || ugrid_validate(&grid) == UGRID_OK);
    if (r == UGRID_OK && n > 0) {
        put_searches(&grid, dim, radius);
        line("searches");
    }
    ugrid_free(&grid);
    free(pos);
}

static void ugrid_part(void)
{
    grid_option option[16];
    int options = 0, w, dim, o, periodic;
    memset(option, 0, sizeof option);
#define OPTION(words, set) (option[options].text = (words), (void)(set), options++)
#define DESC option[options].desc
    OPTION("count", DESC.method = UGRID_COUNT);
    OPTION("sort inverse", (DESC.method = UGRID_SORT, DESC.inverse = 1));
    OPTION("sort morton", (DESC.method = UGRID_SORT, DESC.cell_order = UGRID_MORTON));
    OPTION("count split hybrid",
           (DESC.method = UGRID_COUNT, DESC.split = 4, DESC.walk = UGRID_HYBRID));
    OPTION("count modular bare",
           (DESC.method = UGRID_COUNT, DESC.walk = UGRID_MODULAR, DESC.no_records = 1));
    OPTION("count cells", (DESC.method = UGRID_COUNT, DESC.walk = UGRID_CELLS));
    OPTION("fixed", (DESC.method = UGRID_FIXED, DESC.slots = 600));
    OPTION("fixed rows",
           (DESC.method = UGRID_FIXED, DESC.slots = 600, DESC.slot_layout = UGRID_SLOTS_BY_ROW));
    OPTION("fixed full", (DESC.method = UGRID_FIXED, DESC.slots = 1));
    OPTION("list", DESC.method = UGRID_LIST);
    OPTION("packed", DESC.method = UGRID_LIST_PACKED);
    OPTION("tight", (DESC.method = UGRID_SORT, DESC.placement = UGRID_TIGHT));
    OPTION("tight list", (DESC.method = UGRID_LIST, DESC.placement = UGRID_TIGHT));
    OPTION("unbounded", (DESC.method = UGRID_COUNT, DESC.unbounded = 1));
    OPTION("unbounded list", (DESC.method = UGRID_LIST, DESC.unbounded = 1));
    OPTION("defaults", DESC.cell = -1);
#undef OPTION
#undef DESC
    for (w = 0; w < WORKLOADS; w++)
        for (dim = 2; dim <= 3; dim++)
            for (periodic = 0; periodic < 2; periodic++)
                for (o = 0; o < options; o++) {
                    if ((periodic && (option[o].desc.unbounded || option[o].desc.cell < 0)) ||
                        !chosen())
                        continue;
                    grid_case(w, dim, periodic, &option[o],
                              workload_size(w, w == COINCIDENT ? 90 : 260),
                              (real)(o % 3 == 2 ? 0.23 : 0.1));
                }
    grid_case(UNIFORM, 3, 0, &option[0], quick ? 500 : 6000, (real)0.07);
    grid_case(CLUSTERED, 2, 1, &option[1], quick ? 500 : 6000, (real)0.005);
}

/* ------------------------------------------------------------------------------------------------
   lbvh.h
   ---------------------------------------------------------------------------------------------- */

enum { BOXES, POINTS, SPHERES, TRIANGLES, INDEXED, KINDS };
static const char *const kind_name[] = {"boxes", "points", "spheres", "triangles", "indexed"};

/* n elements of a kind; INDEXED: n vertices. Returns the numbers of one. */
static int make_elements(int workload, int dim, int kind, int32_t n, real *out)
{
    real *centre = (real *)take(((size_t)n + 1) * (size_t)dim * sizeof *centre);
    int const width = kind == BOXES       ? 2 * dim
                      : kind == SPHERES   ? dim + 1
                      : kind == TRIANGLES ? 3 * dim
                                          : dim;
    int32_t i;
    int a, k;
    make_points(workload, (uint64_t)(10 + dim + 5 * kind), n, dim, centre);
    for (i = 0; i < n; i++) {
        real *to = out + (size_t)width * (size_t)i;
        const real *c = centre + (size_t)dim * (size_t)i;
        int const e = -2 - (int)below(9);
        for (a = 0; a < dim; a++) {
            real const d = (real)((double)unit() * power_of_two(e));
            to[a] = c[a];
            if (kind == BOXES) to[dim + a] = c[a] + d;
            for (k = 1; k < 3 && kind == TRIANGLES; k++)
                to[k * dim + a] = c[a] + (k == 1 ? d : -d / 4) * (real)(a == k ? 1 : -1);
        }
        if (kind == SPHERES) to[dim] = (real)((double)unit() * power_of_two(e));
    }
    free(centre);
    return width;
}

static void put_tree(const lbvh *tree)
{
    int32_t k;
    int a;
    put_int(tree->n);
    put_int(tree->first_leaf);
    put_int(tree->desc.dim);
    put_int(tree->desc.bits);
    put_int(tree->bad_id);
    for (k = 0; k < 2 * tree->n - 1; k++) {
        for (a = 0; a < 3; a++) {
            put_number((double)tree->node[k].min[a]);
            put_number((double)tree->node[k].max[a]);
        }
        put_int(tree->node[k].link);
        put_int(tree->node[k].skip);
        if (tree->mask) put_int(tree->mask[k]);
    }
    for (k = 0; k <= tree->n && tree->n > 0; k++) put_int(tree->prefix[k]);
    for (k = 0; k < tree->n && tree->code; k++) put(tree->code[k]);
}

static void put_overlaps(const lbvh *tree, const lbvh_queries *queries)
{
    int32_t const m = queries->data ? queries->n : tree->n;
    int64_t *offsets = (int64_t *)take(((size_t)m + 1) * sizeof *offsets), needed = 0;
    int32_t *counts = (int32_t *)take(((size_t)m + 1) * sizeof *counts), *ids, q;
    check("overlaps", lbvh_overlaps(tree, queries, offsets, NULL, 0, &needed) != LBVH_BAD_ARGUMENT);
    ids = (int32_t *)take(((size_t)needed + 1) * sizeof *ids);
    check("overlaps", lbvh_overlaps(tree, queries, offsets, ids, needed, &needed) == LBVH_OK);
    check("counts", lbvh_count_overlaps(tree, queries, counts) == LBVH_OK);
    for (q = 0; q < m; q++) check("count", counts[q] == offsets[q + 1] - offsets[q]);
    put_longs(offsets, (int64_t)m + 1);
    put_ints(ids, needed);
    put_ints(counts, m);
    free(ids);
    free(counts);
    free(offsets);
}

static lbvh_real to_corner(void *user, int32_t id, const lbvh_real *p)
{
    const lbvh *tree = (const lbvh *)user;
    (void)p;
    return (lbvh_real)(tree->n - id) / 4 + 3;
}

static void put_rays(const lbvh *tree, int dim)
{
    int r, a;
    for (r = 0; r < 24; r++) {
        real origin[3], direction[3];
        lbvh_ray ray;
        for (a = 0; a < 3; a++) {
            origin[a] = (real)(4 * (double)unit() - 2);
            direction[a] = r % 6 == a ? 0 : unit() - origin[a] / 2;
        }
        ray = lbvh_ray_cast(tree, origin, direction, r % 2 ? (real)100 : lbvh_i_infinity());
        while (lbvh_next_ray(&ray)) {
            put_int(ray.id);
            put_number((double)ray.t);
            if (r % 3 == 0) ray.t_max = ray.t;
        }
    }
    (void)dim;
}

static void put_nearest(const lbvh *tree, int dim)
{
    int q, a;
    for (q = 0; q < 12; q++) {
        real p[3], d2[9];
        int32_t ids[9], found = 0;
        lbvh_near walk;
        for (a = 0; a < dim; a++) p[a] = unit() * 2;
        check("nearest", lbvh_nearest(tree, p, 1 + q % 9, q % 2 ? (real)0.25 : lbvh_i_infinity(),
                                      NULL, NULL, ids, d2, &found) == LBVH_OK);
        put_ints(ids, found);
        put_numbers(d2, found);
        check("nearest", lbvh_nearest(tree, p, 1 + q % 9, lbvh_i_infinity(), to_corner,
                                      (void *)(uintptr_t)tree, ids, d2, &found) == LBVH_OK);
        put_ints(ids, found);
        put_numbers(d2, found);
        walk = lbvh_near_point(tree, p, (real)0.5);
        while (lbvh_next_near(&walk)) {
            put_int(walk.id);
            put_number((double)walk.distance2);
            if (walk.id % 3 == 0 && walk.distance2 < walk.reach2) walk.reach2 = walk.distance2;
        }
    }
}

static void put_triangles(const real *corner, int32_t n)
{
    int32_t i;
    for (i = 0; i < n; i++) {
        real p[3], q[3] = {0, 0, 0}, t = 0, u = 0, v = 0, direction[3];
        const real *c = corner + 9 * (size_t)i;
        int a, hit;
        for (a = 0; a < 3; a++) {
            p[a] = unit();
            direction[a] = rounded(rounded(c[a] + c[3 + a]) + 2 * c[6 + a]) / 4 - p[a];
        }
        put_int(lbvh_closest_on_triangle(p, c, c + 3, c + 6, q));
        put_numbers(q, 3);
        hit = lbvh_ray_triangle(p, direction, c, c + 3, c + 6, &t, &u, &v);
        put_int(hit);
        if (!hit) continue;
        put_number((double)t);
        put_number((double)u);
        put_number((double)v);
    }
}

static void put_queries(const lbvh *tree, int dim)
{
    lbvh_queries queries;
    real data[60 * 6];
    int kind, flags, k, count;
    memset(&queries, 0, sizeof queries);
    for (flags = 0; flags < 4; flags++) for (kind = 0; kind < 2; kind++) {
        queries.kind = kind ? LBVH_POINTS : LBVH_BOXES;
        queries.radius = kind ? (real)0.09375 : 0;
        queries.flags = flags;
        queries.filter = kind ? 6u : 0u;
        put_overlaps(tree, &queries);
    }
    memset(&queries, 0, sizeof queries);
    for (kind = 0; kind < 3; kind++) {
        count = make_elements(UNIFORM, dim, kind, 50, data);
        (void)count;
        queries.kind = kind == 0 ? LBVH_BOXES : kind == 1 ? LBVH_POINTS : LBVH_SPHERES;
        queries.data = data;
        queries.n = 50;
        queries.radius = (real)0.1;
        put_overlaps(tree, &queries);
    }
    for (k = 0; k < 5; k++) {
        lbvh_overlap o = lbvh_overlap_sphere(tree, data + k, (real)0.2);
        while (lbvh_next(&o)) put_int(o.id);
    }
}

/* Saved and loaded again: the same tree. */
static void check_saved(const lbvh *tree, const lbvh_desc *desc)
{
    lbvh again = {0};
    int64_t needed = 0;
    uint64_t before, kept = sum;
    unsigned char *bytes;
    lbvh_result r = lbvh_save(tree, NULL, 0, &needed);
    check("size", r == LBVH_BUFFER_TOO_SMALL && needed >= 64);
    bytes = (unsigned char *)take((size_t)needed);
    check("save", lbvh_save(tree, bytes, needed, &needed) == LBVH_OK);
    r = lbvh_load(&again, desc, bytes, needed);
    check("load", r == LBVH_OK);
    if (r == LBVH_OK) {
        uint64_t *const code = again.code;
        lbvh same = *tree;
        same.code = code;
        same.bad_id = again.bad_id;
        begin();
        put_tree(&same);
        before = sum;
        begin();
        put_tree(&again);
        check("loaded as saved", before == sum);
    }
    put_int(needed);
    sum = kept;
    put_int(needed);
    bytes[needed / 2] ^= 1;
    check("damaged", needed == 64 || lbvh_load(&again, desc, bytes, needed) == LBVH_BAD_FILE);
    lbvh_free(&again);
    free(bytes);
}

static void tree_case(int workload, int dim, int kind, int bits, int masked, int32_t n)
{
    static const lbvh_kind kinds[] = {LBVH_BOXES, LBVH_POINTS, LBVH_SPHERES, LBVH_TRIANGLES,
                                      LBVH_TRIANGLES};
    lbvh tree = {0}, split = {0};
    lbvh_desc desc = {0};
    lbvh_quality quality;
    lbvh_result r;
    int64_t pairs = 0, needed = 0;
    int32_t count = kind == INDEXED && n > 2 ? n - 2
                    : kind == INDEXED        ? 0
                                             : n,
            i, rotations = 0, *pair,
            *index = (int32_t *)take(((size_t)n + 1) * 3 * sizeof *index);
    uint32_t *masks = (uint32_t *)take(((size_t)n + 1) * sizeof *masks);
    real *data = (real *)take(((size_t)n + 1) * 9 * sizeof *data),
         *boxes = (real *)take(((size_t)n + 1) * 6 * sizeof *boxes);
    int width;
    uint64_t merged;
    snprintf(name, sizeof name, "lbvh %s %dD %s %d%s", workload_name[workload], dim,
             kind_name[kind], bits, masked ? " masks" : "");
    width = make_elements(workload, dim, kind, n, data);
    for (i = 0; i < n; i++) masks[i] = (uint32_t)(draw() >> 29) & 15u;
    for (i = 0; i < 3 * count; i++) index[i] = i / 3 + i % 3;
    desc.dim = dim;
    desc.kind = kinds[kind];
    desc.radius = kind == POINTS ? (real)0.03125 : 0;
    desc.bits = bits;
    desc.indices = kind == INDEXED ? index : NULL;
    desc.vertices = n;
    desc.masks = masked ? masks : NULL;
    desc.keep_codes = 1;
    begin();
    r = lbvh_build(&tree, &desc, data, 0, count);
    put_int(r);
    put_tree(&tree);
    if (count > 0) {
        put_numbers(tree.lattice.origin, 3);
        put_number((double)tree.lattice.scale);
        put_number((double)tree.lattice.last);
    }
    merged = sum;
    line("tree");
    check("validate", r == LBVH_OK && lbvh_validate(&tree) == LBVH_OK);
    if (r != LBVH_OK) goto done;
    desc.builder = LBVH_SPLIT;
    put_int(lbvh_build(&split, &desc, data, 0, count));
    put_tree(&split);
    if (count > 0) {
        put_numbers(split.lattice.origin, 3);
        put_number((double)split.lattice.scale);
        put_number((double)split.lattice.last);
    }
    check("the builders agree", sum == merged);
    begin();
    check("measure", lbvh_measure(&tree, &quality) == LBVH_OK);
    put_number(quality.sah);
    put_number(quality.overlap);
    put_number(quality.mean_depth);
    put_int(quality.depth);
    line("measure");
    check("pairs", lbvh_count_pairs(&tree, &pairs) == LBVH_OK);
    pair = (int32_t *)take(((size_t)pairs + 1) * 2 * sizeof *pair);
    check("pairs", lbvh_pairs(&tree, pair, pairs, &needed) == LBVH_OK && needed == pairs);
    put_ints(pair, 2 * pairs);
    free(pair);
    put_queries(&tree, dim);
    line("overlaps");
    put_nearest(&tree, dim);
    line("nearest");
    put_rays(&tree, dim);
    line("rays");
    if (kind == TRIANGLES && dim == 3) {
        put_triangles(data, count);
        line("closest");
    }
    check_saved(&tree, &desc);
    for (i = 0; i < width * n; i++) data[i] = kind == SPHERES ? data[i] / 2 : -data[i] / 4;
    for (i = 0; i < n && kind == BOXES; i++) {
        real swap[6];
        memcpy(swap, data + (size_t)width * (size_t)i, (size_t)width * sizeof *swap);
        memcpy(data + (size_t)width * (size_t)i, swap + dim, (size_t)dim * sizeof *swap);
        memcpy(data + (size_t)width * (size_t)i + dim, swap, (size_t)dim * sizeof *swap);
    }
    put_int(lbvh_refit(&tree, data, 0));
    put_tree(&tree);
    put_int(lbvh_boxes(&desc, data, 0, count, boxes, NULL));
    put_numbers(boxes, (int64_t)count * 2 * dim);
    line("refit");
    for (i = 0; i < width * n / 2; i++) { /* elements change places: their numbers, back to front */
        int const other = width * (n - 1 - i / width) + i % width;
        real const moved = data[i];
        data[i] = data[other];
        data[other] = moved;
    }
    put_int(lbvh_refit(&tree, data, 0));
    put_int(lbvh_optimize(&tree, &rotations));
    put_int(rotations);
    put_tree(&tree);
    line("optimize");
done:
    lbvh_free(&tree);
    lbvh_free(&split);
    free(index);
    free(masks);
    free(data);
    free(boxes);
}

/* Elements that are refused, and left out. */
static void left_out_case(void)
{
    lbvh tree = {0};
    lbvh_desc desc = {0};
    real data[40 * 6];
    make_elements(UNIFORM, 3, BOXES, 40, data);
    data[6 * 7] = special(1);
    data[6 * 11 + 4] = special(0);
    data[6 * 13] = data[6 * 13 + 3] + 1;
    snprintf(name, sizeof name, "lbvh left out");
    begin();
    put_int(lbvh_build(&tree, &desc, data, 0, 40));
    put_int(tree.bad_id);
    desc.skip_invalid = 1;
    desc.keep_codes = 1;
    put_int(lbvh_build(&tree, &desc, data, 0, 40));
    put_tree(&tree);
    check("validate", lbvh_validate(&tree) == LBVH_OK);
    put_queries(&tree, 3);
    line("tree");
    lbvh_free(&tree);
}

static void lbvh_part(void)
{
    int w, dim, kind, bits;
    for (w = 0; w < WORKLOADS; w++)
        for (dim = 2; dim <= 3; dim++)
            for (kind = 0; kind < KINDS; kind++)
                for (bits = 30; bits <= 63; bits += 33)
                    if (chosen())
                        tree_case(w, dim, kind, bits, (w + kind + bits) % 2,
                                  workload_size(w, w == COINCIDENT ? 60 : 200));
    tree_case(UNIFORM, 3, SPHERES, 63, 0, quick ? 400 : 4000);
    tree_case(SCALES, 2, BOXES, 30, 1, quick ? 200 : 2000);
    left_out_case();
}

/* ------------------------------------------------------------------------------------------------
   nlist.h
   ---------------------------------------------------------------------------------------------- */

static void put_list(const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    int32_t i, k;
    int kind;
    put_int(list->n);
    put_int(list->total);
    put_int(list->needed_width);
    put_int(list->needed_entries);
    put_int(list->next_uid);
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        put_int(rows->count[i]);
        while (nlist_next(&e)) {
            put_int(e.id);
            put_int(e.entry);
            for (k = 0; k < list->desc.history && e.history; k++)
                put_int(((unsigned char *)e.history)[k]);
        }
    }
    if (rows->touched) put_ints(rows->touched, rows->touched_count);
    if (rows->uid) put_longs(rows->uid, list->n);
    if (rows->reference) put_numbers(rows->reference, (int64_t)list->n * list->desc.dim);
    for (kind = 0; kind < NLIST_EVENT_KINDS && list->desc.events; kind++) {
        int64_t v;
        put_int(list->event_count[kind]);
        for (v = 0; v < list->event_count[kind]; v++) {
            put_int(list->event[kind][v].i);
            put_int(list->event[kind][v].j);
            put_int(list->event[kind][v].entry);
        }
    }
}

/* Every contact writes down, byte by byte, how old it is and to which pair it belongs. */
static void write_history(nlist *list)
{
    int32_t i, k;
    for (i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            unsigned char *bytes = (unsigned char *)e.history;
            if (!bytes) return;
            bytes[0]++;
            for (k = 1; k < list->desc.history; k++)
                if (bytes[k] == 0) bytes[k] = (unsigned char)(i * 7 + e.id * 3 + k);
        }
    }
}

static const real *contact_pos;
static int contact_dim;

static int contact(void *user, int32_t i, int32_t j, void *history, nlist_real *own,
                   nlist_real *other)
{
    int a;
    (void)user;
    for (a = 0; a < contact_dim; a++) {
        real const d = contact_pos[(size_t)contact_dim * (size_t)i + (size_t)a] -
                       contact_pos[(size_t)contact_dim * (size_t)j + (size_t)a];
        own[a] = d * (real)0.3;
        other[a] = -own[a];
    }
    own[3] = history ? (real)*(unsigned char *)history : 1;
    other[3] = own[3] * (real)0.7;
    return (i + j) % 5 != 0;
}

static void put_sums(nlist *list, const real *pos)
{
    real *sums = (real *)take(((size_t)list->n + 1) * 4 * sizeof *sums);
    nlist_sums how = {0};
    int unit_given;
    contact_pos = pos;
    contact_dim = list->desc.dim;
    how.values = 4;
    for (unit_given = 0; unit_given < 2; unit_given++) {
        how.unit = unit_given ? power_of_two(-30) : 0;
        put_int(nlist_sum(list, &how, contact, NULL, sums));
    }
    put_numbers(sums, 4 * (int64_t)list->n);
    free(sums);
}

static void put_list_pairs(const nlist *list, const real *pos)
{
    int64_t needed = 0;
    int32_t *pair = (int32_t *)take(((size_t)list->total + 1) * 2 * sizeof *pair),
            *shift = (int32_t *)take(((size_t)list->total + 1) * 3 * sizeof *shift);
    check("pairs", nlist_pairs(list, pair, list->total, &needed, pos, 0, shift) == NLIST_OK &&
                       needed == list->total);
    put_ints(pair, 2 * needed);
    put_ints(shift, 3 * needed);
    free(pair);
    free(shift);
}

/* Saved, and loaded into every layout. */
static void put_loaded(const nlist *list, const nlist_desc *given)
{
    int64_t needed = 0;
    unsigned char *bytes;
    nlist_desc desc = {0};
    int layout;
    check("size", nlist_save(list, NULL, 0, &needed) == NLIST_BUFFER_TOO_SMALL);
    bytes = (unsigned char *)take((size_t)needed);
    check("save", nlist_save(list, bytes, needed, &needed) == NLIST_OK);
    put_int(needed);
    desc.allocator = given->allocator;
    desc.radius = given->radius;
    desc.grow = 1;
    desc.width = 4;
    for (layout = NLIST_COMPACT; layout <= NLIST_HYBRID; layout++) {
        nlist again = {0};
        desc.layout = (nlist_layout)layout;
        /* triangles are pairs */
        if (list->keys && (layout == NLIST_STATIC || layout == NLIST_HYBRID)) {
            check("refused", nlist_load(&again, &desc, bytes, needed) == NLIST_BAD_OPTION);
            continue;
        }
        check("load", nlist_load(&again, &desc, bytes, needed) == NLIST_OK &&
                          nlist_validate(&again) == NLIST_OK);
        put_list(&again);
        bytes[needed - 1] ^= 1;
        check("damaged", nlist_load(&again, &desc, bytes, needed) == NLIST_BAD_FILE);
        bytes[needed - 1] ^= 1;
        nlist_free(&again);
    }
    free(bytes);
}

enum { BRUTE, GRID, TREE, PAIRS, SOURCES };
static const char *const source_name[] = {"brute", "ugrid", "lbvh", "pairs"};
static const char *const layout_name[] = {"compact", "static", "dynamic", "hybrid"};

static nlist_result build_list(nlist *list, const nlist_desc *desc, int source, const real *pos,
                               int32_t n)
{
    ugrid grid = {0};
    ugrid_desc cells = {0};
    lbvh tree = {0};
    lbvh_desc boxes = {0};
    nlist_result r = NLIST_BAD_SOURCE;
    int64_t needed = 0;
    int32_t *pair, i;
    int a;
    cells.dim = desc->dim;
    boxes.dim = desc->dim;
    boxes.kind = LBVH_POINTS;
    cells.method = UGRID_SORT;
    for (a = 0; a < desc->dim; a++) {
        cells.max[a] = 1;
        cells.periodic[a] = desc->periodic[a];
    }
    cells.cell = (real)0.125;
    switch (source) {
    case BRUTE: r = nlist_build_brute(list, desc, pos, 0, n); break;
    case GRID:
        check("grid", ugrid_build(&grid, &cells, pos, 0, n) == UGRID_OK);
        r = nlist_build_ugrid(list, desc, &grid, pos, 0, n);
        break;
    case TREE:
        check("tree", lbvh_build(&tree, &boxes, pos, 0, n) == LBVH_OK);
        r = nlist_build_lbvh(list, desc, &tree, pos, 0, n);
        break;
    case PAIRS:
        needed = 3 * (int64_t)n;
        pair = (int32_t *)take(((size_t)needed + 1) * 2 * sizeof *pair);
        seed((uint64_t)n);
        for (i = 0; i < needed; i++) {
            pair[2 * i] = (int32_t)below((uint32_t)n);
            pair[2 * i + 1] = (int32_t)((uint32_t)pair[2 * i] + 1 + below((uint32_t)n - 1)) % n;
        }
        r = nlist_build_pairs(list, desc, pair, needed, n);
        free(pair);
        break;
    default: break;
    }
    ugrid_free(&grid);
    lbvh_free(&tree);
    return r;
}

static void list_case(int workload, int dim, int source, int layout, int half, int periodic,
                      int32_t n)
{
    nlist list = {0};
    nlist_desc desc = {0};
    real *pos = (real *)take(((size_t)n + 1) * (size_t)dim * sizeof *pos),
         *radii = (real *)take(((size_t)n + 1) * sizeof *radii);
    int32_t *new_id = (int32_t *)take(((size_t)n + 1) * sizeof *new_id), moved = 0, i;
    uint32_t *masks = (uint32_t *)take(((size_t)n + 1) * sizeof *masks);
    int step, a;
    nlist_result r;
    snprintf(name, sizeof name, "nlist %s %dD %s %s%s%s", workload_name[workload], dim,
             source_name[source], layout_name[layout], half ? " half" : "",
             periodic ? " periodic" : "");
    make_points(workload, (uint64_t)(30 + dim), n, dim, pos);
    for (i = 0; i < n; i++) {
        radii[i] = unit() / 64;
        masks[i] = (uint32_t)(draw() >> 61);
        new_id[i] = (i * 7 + 3) % n; /* n is no multiple of 7 */
    }
    desc.dim = dim;
    desc.radius = (real)0.0625;
    desc.radii = layout % 2 ? radii : NULL;
    desc.masks = layout >= 2 ? masks : NULL;
    desc.skin = source == PAIRS ? 0 : (real)0.015625;
    desc.layout = (nlist_layout)layout;
    desc.width = layout == NLIST_STATIC ? 8 : 2;
    desc.grow = 1;
    desc.half = half;
    desc.history = 5;
    desc.events = 1;
    for (a = 0; a < dim && source != PAIRS; a++) {
        desc.max[a] = 1;
        desc.periodic[a] = periodic && a != 1;
    }
    begin();
    for (step = 0; step < 3; step++) {
        r = build_list(&list, &desc, source, pos, n);
        put_int(r);
        check("build", r == NLIST_OK && nlist_validate(&list) == NLIST_OK);
        if (r != NLIST_OK) break;
        write_history(&list);
        put_list(&list);
        put_sums(&list, pos);
        if (source != PAIRS) put_list_pairs(&list, pos);
        if (step == 1) {
            put_int(nlist_remap(&list, new_id, n));
            check("remap", nlist_validate(&list) == NLIST_OK);
            put_list(&list);
            put_loaded(&list, &desc);
        }
        for (i = 0; i < n * dim; i++)
            if (pos[i] >= (real)0.5 && pos[i] < 1) pos[i] -= (real)((i * 37 + step) % 8) / 256;
        if (desc.skin > 0) {
            put_int(nlist_moved(&list, pos, 0, &moved));
            put_int(moved);
        }
    }
    line("list");
    nlist_free(&list);
    free(pos);
    free(radii);
    free(new_id);
    free(masks);
}

/* A bumpy sheet of triangles, and particles that roll over it. */
static void mesh_case(int indexed)
{
    enum { SIDE = 9, N = 120 };
    nlist list = {0};
    nlist_desc desc = {0};
    nlist_mesh mesh = {0};
    lbvh tree = {0};
    lbvh_desc boxes = {0};
    real vertex[SIDE * SIDE * 3], corner[2 * (SIDE - 1) * (SIDE - 1) * 9], pos[3 * N];
    int32_t index[2 * (SIDE - 1) * (SIDE - 1) * 3], triangles = 0, i;
    int x, y, k, step;
    snprintf(name, sizeof name, "nlist mesh%s", indexed ? " indexed" : "");
    seed(77);
    for (y = 0; y < SIDE; y++) for (x = 0; x < SIDE; x++) {
        real *v = vertex + 3 * (y * SIDE + x);
        v[0] = (real)x / 8;
        v[1] = (real)y / 8;
        v[2] = x < 4 ? 0 : unit() / 16;
    }
    for (y = 0; y + 1 < SIDE; y++) for (x = 0; x + 1 < SIDE; x++) {
        int32_t const a = y * SIDE + x, b = a + 1, c = a + SIDE, d = c + 1;
        int32_t const both[6] = {a, b, c, b, d, c};
        for (k = 0; k < 6; k++) index[3 * triangles + k] = both[k];
        triangles += 2;
    }
    for (i = 0; i < 3 * triangles; i++)
        memcpy(corner + 3 * i, vertex + 3 * index[i], 3 * sizeof *corner);
    mesh.vertices = indexed ? vertex : corner;
    mesh.vertex_count = SIDE * SIDE;
    mesh.indices = indexed ? index : NULL;
    mesh.triangles = triangles;
    boxes.kind = LBVH_TRIANGLES;
    boxes.indices = mesh.indices;
    boxes.vertices = SIDE * SIDE;
    check("tree", lbvh_build(&tree, &boxes, mesh.vertices, 0, triangles) == LBVH_OK);
    for (i = 0; i < 3 * N; i++) pos[i] = i % 3 == 2 ? unit() / 8 : unit();
    desc.radius = (real)0.0625;
    desc.layout = NLIST_DYNAMIC;
    desc.history = 3;
    desc.events = 1;
    begin();
    for (step = 0; step < 3; step++) {
        put_int(nlist_build_mesh(&list, &desc, &tree, &mesh, pos, 0, N));
        check("validate", nlist_validate(&list) == NLIST_OK);
        write_history(&list);
        put_list(&list);
        for (i = 0; i < N; i++) {
            nlist_each e = nlist_of(&list, i);
            while (nlist_next(&e)) {
                real q[3];
                put_int(nlist_mesh_closest(&mesh, nlist_key_triangle(e.id), pos + 3 * i, q));
                put_numbers(q, 3);
            }
        }
        for (i = 0; i < 3 * N; i++) if (i % 3 < 2 && pos[i] >= (real)0.5) pos[i] -= (real)0.0078125;
    }
    put_loaded(&list, &desc);
    line("list");
    nlist_free(&list);
    lbvh_free(&tree);
}

static void nlist_part(void)
{
    static const int workloads[] = {UNIFORM, CLUSTERED, LATTICE, COINCIDENT, BORDER, TINY};
    int w, dim, source, layout, half;
    for (w = 0; w < COUNT_OF(workloads); w++)
        for (dim = 2; dim <= 3; dim++)
            for (source = 0; source < SOURCES; source++)
                for (layout = 0; layout < 4; layout++)
                    for (half = 0; half < 2; half++) {
                        int const periodic = (layout + half + dim) % 2 && source != PAIRS;
                        int32_t const n =
                            workload_size(workloads[w], workloads[w] == COINCIDENT ? 30 : 120);
                        if (!chosen()) continue;
                        /* points outside the box: the images searched differ */
                        if (workloads[w] == BORDER && periodic && source == TREE) continue;
                        list_case(workloads[w], dim, source, layout, half, periodic, n);
                    }
    list_case(UNIFORM, 3, GRID, NLIST_COMPACT, 0, 1, quick ? 300 : 3000);
    mesh_case(0);
    mesh_case(1);
}

/* ------------------------------------------------------------------------------------------------
   nbody.h
   ---------------------------------------------------------------------------------------------- */

typedef struct force_option {
    const char *text;
    nbody_method method;
    int order;
    nbody_sources sources;
    int levels, leaf;
} force_option;

static void put_frame(const nbody *sim)
{
    const nbody_frame *f = sim->frame;
    double const numbers[9] = {f->min[0],    f->min[1],    f->size,    f->length, f->mass,
                               f->origin[0], f->origin[1], f->inverse, f->soften2};
    int k;
    for (k = 0; k < 9; k++) put_number(numbers[k]);
    put_int(f->levels);
    put_int(f->cells);
    for (k = 0; k <= f->levels; k++) put_int(f->level_first[k]);
}

static void put_sim(const nbody *sim)
{
    int32_t c, s;
    int k;
    put_int(sim->n);
    if (sim->n == 0 || !sim->frame) return;
    put_frame(sim);
    put_ints(sim->id, sim->n);
    put_numbers(sim->x, sim->n);
    put_numbers(sim->y, sim->n);
    put_numbers(sim->m, sim->n);
    if (!sim->cell) return;
    for (c = 0; c < sim->frame->cells; c++) {
        const nbody_cell *cell = &sim->cell[c];
        int const numbers[9] = {cell->x,     cell->y,        cell->first,
                                cell->count, cell->parent,   cell->child,
                                cell->level, cell->children, cell->quarters};
        for (k = 0; k < 9; k++) put_int(numbers[k]);
        put_ints(cell->beside, cell->beside_count);
    }
    for (k = 0; k < sim->rule.side; k++) {
        put_number((double)sim->rule.t[k]);
        put_number((double)sim->rule.scale[k]);
    }
    for (c = sim->frame->levels > 2 ? sim->frame->level_first[2] : sim->frame->cells;
         c < sim->frame->cells; c++) {
        int64_t const at = (int64_t)c * sim->per_cell;
        int const centres = sim->desc.sources == NBODY_MASS_CENTRES;
        int32_t const made = centres ? sim->cell[c].child < 0 ? 0 : sim->made[c] : sim->per_cell;
        if (!sim->vm) break;
        for (s = 0; s < made; s++) {
            put_number((double)sim->vm[at + s]);
            if (!centres) continue;
            put_number((double)sim->vx[at + s]);
            put_number((double)sim->vy[at + s]);
            if (!sim->vxx || sim->desc.method != NBODY_VIRTUAL_PARTICLES || sim->desc.order != 2)
                continue;
            put_number((double)sim->vxx[at + s]);
            put_number((double)sim->vxy[at + s]);
            put_number((double)sim->vyy[at + s]);
        }
    }
}

/* Within the direct sum by a share of all terms: what each setting can do, with room
   (tests/unit/nbody/test_nbody.c has the measured ones). */
static void check_share(const nbody *sim, const real *acc, double most)
{
    nbody_error error;
    if (nbody_estimate(sim, acc, 50, 1, &error) != NBODY_OK) {
        check("estimate", 0);
        return;
    }
    check("near the direct sum", error.share <= most);
    put_int(error.samples);
    put_number(error.mean);
    put_number(error.worst);
    put_number(error.share);
    put_number(error.direction);
    put_number(error.length);
}

/* Five sets of masses on the tree, then one. */
static void sets_case(nbody *sim, int32_t n)
{
    size_t const all = 5 * ((size_t)n + 1);
    real *mass = (real *)take(all * sizeof *mass), *acc = (real *)take(2 * all * sizeof *acc),
         *phi = (real *)take(all * sizeof *phi);
    int32_t i;
    for (i = 0; i < 5 * n; i++) mass[i] = unit() + 1;
    put_int(nbody_fields_sets(sim, 5, mass, acc, phi));
    put_numbers(acc, 10 * n);
    put_numbers(phi, 5 * n);
    line("sets");
    put_int(nbody_fields_again(sim, mass, acc, NULL));
    put_numbers(acc, 2 * n);
    line("again");
    free(mass);
    free(acc);
    free(phi);
}

static void force_case(int workload, const force_option *option, nbody_law law, int32_t n,
                       int with_mass)
{
    nbody sim = {0};
    nbody_desc desc = {0};
    nbody_bodies bodies = {0};
    nbody_energies energy;
    nbody_counts counts;
    real *pos = (real *)take(((size_t)n + 1) * 2 * sizeof *pos),
         *vel = (real *)take(((size_t)n + 1) * 2 * sizeof *vel);
    real *acc = (real *)take(((size_t)n + 1) * 2 * sizeof *acc),
         *phi = (real *)take(((size_t)n + 1) * sizeof *phi);
    real *mass = (real *)take(((size_t)n + 1) * sizeof *mass), points[40], at[40], potential[20];
    int32_t i;
    nbody_result r;
    snprintf(name, sizeof name, "nbody %s %s%s%s", workload_name[workload], option->text,
             law == NBODY_INVERSE ? " 1/d" : "", with_mass ? " masses" : "");
    make_points(workload, 50, n, 2, pos);
    for (i = 0; i < n; i++) mass[i] = unit() + 1;
    for (i = 0; i < 2 * n; i++) vel[i] = unit() - (real)0.5;
    desc.method = option->method;
    desc.order = option->order;
    desc.sources = option->sources;
    desc.levels = option->levels;
    desc.leaf = option->leaf;
    desc.law = law;
    desc.gravity = (real)0.75;
    desc.softening = with_mass ? (real)0.01 : 0;
    begin();
    r = nbody_build(&sim, &desc, pos, 0, with_mass ? mass : NULL, n);
    put_int(r);
    check("build", r == NBODY_OK && nbody_validate(&sim) == NBODY_OK);
    if (r == NBODY_OK) put_sim(&sim);
    line("tree");
    r = nbody_accelerations(&sim, &desc, pos, 0, with_mass ? mass : NULL, n, acc);
    put_int(r);
    put_numbers(acc, 2 * n);
    line("forces");
    r = nbody_fields(&sim, &desc, pos, 0, with_mass ? mass : NULL, n, acc, phi);
    put_int(r);
    put_numbers(acc, 2 * n);
    put_numbers(phi, n);
    line("fields");
    if (n > 1 && workload != COINCIDENT) {
        check_share(&sim, acc, option->method == NBODY_DIRECT ? 1e-5 : 5e-2);
        line("estimate");
    }
    if (nbody_count(&sim, &counts) == NBODY_OK) {
        put_int(counts.cells);
        put_int(counts.leaves);
        put_int(counts.near_terms);
        put_int(counts.far_terms);
        put_int(counts.table_terms);
    }
    for (i = 0; i < 40; i++) points[i] = 2 * unit() - (real)0.5;
    memset(at, 0, sizeof at);
    memset(potential, 0, sizeof potential);
    put_int(nbody_fields_at(&sim, points, 0, 20, at, potential, NULL));
    put_numbers(at, 40);
    put_numbers(potential, 20);
    line("at points");
    sets_case(&sim, n);
    bodies.pos = pos;
    bodies.vel = vel;
    bodies.acc = acc;
    bodies.mass = with_mass ? mass : NULL;
    bodies.n = n;
    for (i = 0; i < 3; i++)
        put_int(
            nbody_step(&sim, &desc, &bodies, (real)0.001, i == 2 ? NBODY_EULER : NBODY_LEAPFROG));
    put_numbers(pos, 2 * n);
    put_numbers(vel, 2 * n);
    line("steps");
    put_int(nbody_energy(&bodies, phi, &energy));
    put_number(energy.kinetic);
    put_number(energy.potential);
    put_number(energy.mass);
    put_number(energy.momentum[0]);
    put_number(energy.momentum[1]);
    put_number(energy.angular);
    put_number(energy.centre[0]);
    line("energy");
    nbody_free(&sim);
    free(pos);
    free(vel);
    free(acc);
    free(phi);
    free(mass);
}

static void nbody_part(void)
{
    static const force_option option[] = {
        {"auto", NBODY_AUTO, 0, NBODY_SOURCES_AUTO, 0, 0},
        {"direct", NBODY_DIRECT, 0, NBODY_SOURCES_AUTO, 0, 0},
        {"virtual", NBODY_VIRTUAL_PARTICLES, 1, NBODY_SOURCES_AUTO, 0, 4},
        {"virtual moments", NBODY_VIRTUAL_PARTICLES, 2, NBODY_SOURCES_AUTO, 5, 0},
        {"nodes 1", NBODY_FORCE_NODES, 1, NBODY_SOURCES_AUTO, 0, 6},
        {"nodes 4", NBODY_FORCE_NODES, 4, NBODY_SOURCES_AUTO, 0, 3},
        {"nodes 4 centres", NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES, 0, 5},
        {"nodes 7 levels", NBODY_FORCE_NODES, 7, NBODY_SOURCES_AUTO, 4, 0},
        {"nodes 12", NBODY_FORCE_NODES, 12, NBODY_SOURCES_AUTO, 0, 0},
    };
    static const int workloads[] = {UNIFORM, CLUSTERED, LATTICE, COINCIDENT, BORDER,
                                    SCALES,  TINY,      ONE,     NONE};
    int w, o;
    for (w = 0; w < COUNT_OF(workloads); w++) for (o = 0; o < COUNT_OF(option); o++)
            if (chosen())
                force_case(workloads[w], &option[o],
                           (w + o) % 3 == 1 ? NBODY_INVERSE : NBODY_INVERSE_SQUARE,
                           workload_size(workloads[w], 300), o % 2);
    force_case(CLUSTERED, &option[5], NBODY_INVERSE_SQUARE, quick ? 300 : 4000, 1);
    force_case(UNIFORM, &option[5], NBODY_INVERSE, quick ? 200 : 3000, 0);
}

/* ------------------------------------------------------------------------------------------------
   Sizes that 32 bits cannot count: refused, never wrapped
   ---------------------------------------------------------------------------------------------- */

enum { SMALL = 1 << 22 };
static uint64_t asked;          /* bytes, in all */
static double place[16];        /* stands for memory that is reserved and never written */

/* Gives what half of 32 bits can count, on every machine. */
static void *limited_alloc(size_t bytes, void *user)
{
    unsigned char *memory, *at;
    (void)user;
    if (bytes > 0x7FFFFFFFu) return NULL;
    asked += bytes;
    at = (unsigned char *)place + (16 - (uintptr_t)place % 16);
    if (bytes > SMALL) return at;
    memory = (unsigned char *)malloc(bytes + 32);
    if (!memory) return NULL;
    at = memory + 16 + (16 - (uintptr_t)memory % 16);
    memcpy(at - sizeof memory, &memory, sizeof memory);
    return at;
}

static void limited_free(void *at, size_t bytes, void *user)
{
    unsigned char *memory;
    (void)user;
    if (bytes > SMALL) return;
    memcpy(&memory, (unsigned char *)at - sizeof memory, sizeof memory);
    free(memory);
}

/* Refused, or asked for at least so many bytes for each of n. */
static void settle(int ok, int refused, int32_t n, uint64_t least)
{
    check("refused or enough", refused || (ok && asked >= (uint64_t)n * least));
    /* which of the two is not hashed: records of doubles have 28 bytes on i386, and 32 elsewhere */
    line("reserve");
    asked = 0;
}

static void limits_part(void)
{
    static const int32_t sizes[] = {1 << 20,    1 << 24,   (1 << 25) + 1,   44739243,  1 << 26,
                                    67108865,   89478486,  107374183,       1 << 27,   134217729,
                                    178956971,  1 << 28,   268435457,       357913942, 1 << 29,
                                    536870913,  715827883, (1 << 30) - 512, 1 << 30,   1073741825,
                                    2147482624, 2147483647};
    int k, o;
    asked = 0;
    for (k = 0; k < COUNT_OF(sizes); k++) {
        int32_t const n = sizes[k];
        for (o = 0; o < 8; o++) {
            static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT,        UGRID_FIXED,
                                                   UGRID_LIST,  UGRID_LIST_PACKED, UGRID_COUNT,
                                                   UGRID_LIST,  UGRID_SORT};
            static const uint64_t least[] = {24, 36, 0, 4, 16, 64, 32, 160};
            ugrid grid = {0};
            ugrid_desc desc = {0};
            ugrid_result r;
            desc.allocator.alloc = limited_alloc;
            desc.allocator.free = limited_free;
            desc.max[0] = desc.max[1] = desc.max[2] = 1;
            desc.method = methods[o];
            desc.placement = o >= 5 ? UGRID_TIGHT : UGRID_LOOSE;
            desc.cell = (real)0.125;
            desc.slots = o == 2 ? 3000000 : 0;
            snprintf(name, sizeof name, "limits ugrid %d of %ld", o, (long)n);
            r = ugrid_reserve(&grid, &desc, n);
            settle(r == UGRID_OK,
                   r == UGRID_OUT_OF_MEMORY || r == UGRID_TOO_MANY_ENTRIES ||
                       r == UGRID_BAD_ARGUMENT,
                   n, least[o]);
            ugrid_free(&grid);
        }
        for (o = 0; o < 4; o++) {
            lbvh tree = {0};
            lbvh_desc desc = {0};
            uint32_t mask = 0;
            lbvh_result r;
            desc.allocator.alloc = limited_alloc;
            desc.allocator.free = limited_free;
            desc.builder = o & 1 ? LBVH_SPLIT : LBVH_MERGE;
            desc.masks = o & 2 ? &mask : NULL;
            snprintf(name, sizeof name, "limits lbvh %d of %ld", o, (long)n);
            r = lbvh_reserve(&tree, &desc, n);
            settle(r == LBVH_OK, r == LBVH_OUT_OF_MEMORY || r == LBVH_TOO_MANY, n,
                   65 + (o & 1 ? 8 : 0) + (o & 2 ? 8 : 0));
            lbvh_free(&tree);
        }
        for (o = 0; o < 16; o++) {
            nlist list = {0};
            nlist_desc desc = {0};
            nlist_result r;
            int64_t const entries = o & 8 ? (int64_t)n * (o & 4 ? 1 : 4097) : 0;
            uint64_t least = desc.layout == NLIST_STATIC ? 4 : 8;
            desc.allocator.alloc = limited_alloc;
            desc.allocator.free = limited_free;
            desc.layout = (nlist_layout)(o & 3);
            desc.history = o & 4 ? 4096 : 0;
            desc.width = 1024;
            desc.radius = 1;
            if (desc.layout == NLIST_STATIC || desc.layout == NLIST_HYBRID)
                least = 4096 + (o & 4 ? (uint64_t)4096 * 1024 : 0);
            if (o & 8) least = desc.layout == NLIST_STATIC ? 0 : 4 + (o & 4 ? 4096 : 4096 * 4);
            snprintf(name, sizeof name, "limits nlist %d of %ld", o, (long)n);
            r = nlist_reserve(&list, &desc, o & 8 ? 3 : n, entries);
            settle(r == NLIST_OK, r == NLIST_OUT_OF_MEMORY || r == NLIST_TOO_MANY, n, least);
            nlist_free(&list);
        }
        for (o = 0; o < 4; o++) {
            nbody sim = {0};
            nbody_desc desc = {0};
            nbody_result r;
            desc.allocator.alloc = limited_alloc;
            desc.allocator.free = limited_free;
            desc.method = o == 0   ? NBODY_DIRECT
                          : o == 1 ? NBODY_VIRTUAL_PARTICLES
                                   : NBODY_FORCE_NODES;
            desc.order = o == 3 ? 12 : 0;
            desc.levels = o == 2 ? 17 : 0;
            snprintf(name, sizeof name, "limits nbody %d of %ld", o, (long)n);
            r = nbody_reserve(&sim, &desc, n);
            settle(r == NBODY_OK, r == NBODY_OUT_OF_MEMORY || r == NBODY_TOO_MANY, n, 16);
            nbody_free(&sim);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   Malloc, as it is
   ---------------------------------------------------------------------------------------------- */

/* All zero is a valid desc, and so is its allocator: with malloc and free, whatever the machine,
   small and large blocks. */
static void malloc_part(void)
{
    static real pos[3 * 3000];
    static const int32_t sizes[] = {1, 2, 3, 5, 10, 17, 100, 1000, 3000};
    int k;
    snprintf(name, sizeof name, "malloc");
    make_points(UNIFORM, 9, 3000, 3, pos);
    for (k = 0; k < COUNT_OF(sizes); k++) {
        ugrid grid = {0};
        lbvh tree = {0};
        nlist list = {0};
        nbody sim = {0};
        lbvh_desc points = {0};
        nlist_desc desc = {0};
        points.kind = LBVH_POINTS;
        desc.radius = (real)0.0625;
        check("ugrid_build", ugrid_build(&grid, NULL, pos, 0, sizes[k]) == UGRID_OK);
        check("lbvh_build", lbvh_build(&tree, &points, pos, 0, sizes[k]) == LBVH_OK);
        if (sizes[k] <= 1000)
            check("nlist_build_brute",
                  nlist_build_brute(&list, &desc, pos, 0, sizes[k]) == NLIST_OK);
        check("nbody_build", nbody_build(&sim, NULL, pos, 0, NULL, sizes[k]) == NBODY_OK);
        ugrid_free(&grid);
        lbvh_free(&tree);
        nlist_free(&list);
        nbody_free(&sim);
    }
    begin();
    line("done");
}

/* ------------------------------------------------------------------------------------------------
   Files
   ---------------------------------------------------------------------------------------------- */

static char folder[400];

static FILE *open_file(const char *what, const char *mode)
{
    char path[512];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, what);
    file = fopen(path, mode);
    if (!file) {
        printf("bad cannot open %s\n", path);
        exit(3);
    }
    return file;
}

static void write_file(const char *what, const unsigned char *bytes, int64_t size)
{
    FILE *file = open_file(what, "wb");
    if (fwrite(bytes, 1, (size_t)size, file) != (size_t)size || fclose(file) != 0) {
        printf("bad cannot write %s\n", what);
        exit(3);
    }
}

static unsigned char *read_file(const char *what, int64_t *size)
{
    FILE *file = open_file(what, "rb");
    unsigned char *bytes = (unsigned char *)take((size_t)1 << 20);
    *size = (int64_t)fread(bytes, 1, (size_t)1 << 20, file);
    fclose(file);
    return bytes;
}

static void save_files(void)
{
    static real pos[3 * 500], boxes[6 * 300];
    static uint32_t masks[300];
    lbvh tree = {0};
    lbvh_desc shape = {0};
    nlist list = {0};
    nlist_desc desc = {0};
    int32_t new_id[500];
    unsigned char *bytes = (unsigned char *)take((size_t)1 << 20);
    int64_t needed = 0;
    int32_t i;
    int k;
    make_elements(CLUSTERED, 3, BOXES, 300, boxes);
    for (i = 0; i < 300; i++) masks[i] = (uint32_t)(draw() >> 32);
    for (k = 0; k < 3; k++) {
        char what[20];
        shape.dim = 2 + (k > 0);
        shape.kind = k > 0 ? LBVH_BOXES : LBVH_POINTS;
        shape.bits = k == 1 ? 30 : 63;
        shape.masks = k == 2 ? masks : NULL;
        check("tree", lbvh_build(&tree, &shape, boxes, 0, k == 0 ? 1 : 300) == LBVH_OK);
        check("save", lbvh_save(&tree, bytes, (int64_t)1 << 20, &needed) == LBVH_OK);
        snprintf(what, sizeof what, "tree%d", k);
        write_file(what, bytes, needed);
    }
    make_points(UNIFORM, 3, 500, 3, pos);
    for (i = 0; i < 500; i++) new_id[i] = (i * 7 + 3) % 500;
    for (k = 0; k < 3; k++) {
        char what[20];
        nlist_free(&list);
        desc.dim = k == 2 ? 2 : 3;
        desc.radius = (real)0.09375;
        desc.layout = (nlist_layout)k;
        desc.grow = 1;
        desc.half = k > 0;
        desc.history = k > 0 ? 11 : 0;
        desc.skin = k > 0 ? (real)0.015625 : 0;
        desc.periodic[1] = k == 2;
        desc.max[1] = 1;
        check("list", nlist_build_brute(&list, &desc, pos, 0, k == 2 ? 300 : 500) == NLIST_OK);
        write_history(&list);
        if (k == 1) check("remap", nlist_remap(&list, new_id, 500) == NLIST_OK);
        check("save", nlist_save(&list, bytes, (int64_t)1 << 20, &needed) == NLIST_OK);
        snprintf(what, sizeof what, "list%d", k);
        write_file(what, bytes, needed);
    }
    lbvh_free(&tree);
    nlist_free(&list);
    free(bytes);
}

static void load_files(void)
{
    lbvh tree = {0};
    lbvh_desc shape = {0};
    nlist list = {0};
    nlist_desc desc = {0};
    int64_t size;
    int k, shorter;
    desc.radius = (real)0.09375;
    for (k = 0; k < 6; k++) {
        char what[20];
        unsigned char *bytes;
        snprintf(what, sizeof what, "%s%d", k < 3 ? "tree" : "list", k % 3);
        bytes = read_file(what, &size);
        snprintf(name, sizeof name, "file %s", what);
        begin();
        if (k < 3) {
            lbvh_result const r = lbvh_load(&tree, &shape, bytes, size);
            if (r == LBVH_OK) {
                put_tree(&tree);
                put_nearest(&tree, tree.desc.dim);
                line("loaded");
            } else printf("%s refused%s\n", name, r == LBVH_BAD_FILE ? "" : " by a wrong code");
            /* never a crash */
            for (shorter = 0; shorter < 130 && shorter < size; shorter += 1 + shorter / 8)
                check("cut", lbvh_load(&tree, &shape, bytes, shorter) == LBVH_BAD_FILE);
        } else {
            nlist_result const r = nlist_load(&list, &desc, bytes, size);
            if (r == NLIST_OK) {
                check("validate", nlist_validate(&list) == NLIST_OK);
                put_list(&list);
                line("loaded");
            } else printf("%s refused%s\n", name, r == NLIST_BAD_FILE ? "" : " by a wrong code");
            for (shorter = 0; shorter < 130 && shorter < size; shorter += 1 + shorter / 8)
                check("cut", nlist_load(&list, &desc, bytes, shorter) == NLIST_BAD_FILE);
            nlist_free(&list);
        }
        free(bytes);
    }
    lbvh_free(&tree);
}

int main(int argc, char **argv)
{
    static const struct { const char *text; void (*run)(void);
    } part[] = {{"ugrid", ugrid_part}, {"lbvh", lbvh_part},     {"nlist", nlist_part},
                {"nbody", nbody_part}, {"limits", limits_part}, {"malloc", malloc_part}};
    int k, done = 0;
    begin();
    quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    if (argc > 2) {
        snprintf(folder, sizeof folder, "%s", argv[2]);
        if (strcmp(argv[1], "save") == 0) save_files();
        else load_files();
        return bad > 0;
    }
    for (k = 0; k < COUNT_OF(part); k++) {
        if (argc > 1 && !quick && strcmp(argv[1], part[k].text) != 0) continue;
        part[k].run();
        done++;
    }
    printf("end %d parts, %d bad\n", done, bad);
    return bad > 0;
}
