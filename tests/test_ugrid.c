/* test_ugrid.c - tests of the serial part of ugrid.h.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/test_ugrid.c -o test_ugrid -lcmocka -lm && ./test_ugrid
       (add -DUGRID_REAL=double for the double build; packages: libcmocka-dev libstb-dev)

   The oracle is brute force over the points as they were given to ugrid_build. It shares no code with the header: its
   distances are computed in double, with its own rule for the nearest image. Rounding can move a pair that lies on the rim
   of the search to either side, so the oracle sorts pairs into three kinds:

       OUTSIDE   further apart than the radius, by more than a few units in the last place
       RIM       so close to the radius that rounding decides
       WITHIN    closer, by more than a few units in the last place

   WITHIN must be found, OUTSIDE must not. A pair on the RIM is decided by the rule that the header states, d2 <= radius *
   radius with every operation rounded, which is written once more here (step_along); but only where all points lie in the
   box. Elsewhere it depends on how a position was moved into the box, and we only ask that all searches of one grid agree.
   Inputs on a lattice whose numbers are short binary fractions have no rounding at all; there the rim is WITHIN.

   Environment:
       UGRID_TEST_SHARE=k   runs one k-th of the big products (default: 1; 6 under a sanitizer). Use 60 under valgrind.
       UGRID_TEST_LOT=j     which one (default: 0)
       UGRID_TEST_ONLY=p    runs the tests whose names match p, such as 'test_cell*'
       UGRID_TEST_SEED=s    replays the random operations with the seed that a failing run printed
       UGRID_TEST_STEPS=k   number of random operations */

#define STB_DS_IMPLEMENTATION
#include <stb/stb_ds.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define TESTED ugrid
#define SHARE environment("UGRID_TEST_SHARE", SANITIZED ? 6 : 1)
#define LOT environment("UGRID_TEST_LOT", 0)
#include "testing.h"

/* ------------------------------------------------------------------------------------------------
   The oracle
   ------------------------------------------------------------------------------------------------ */

enum { OUTSIDE, RIM, WITHIN };

/* Bounds: bit a set = axis a is periodic; or no box at all. */
enum { UNBOUNDED = 8, CROWDED = 9 /* unbounded, all cells in 4 buckets */, ALL_BOUNDS = 10 };

enum { RADII = 4, QUERIES = 8 };

/* Points in a box, and the truth about which are near which, per radius. */
typedef struct scene {
    const char *input;
    int dim, bounds, exact;     /* exact: no operation on these numbers rounds */
    int cells[3];
    real min[3], max[3], cell;
    int32_t n;
    real *pos;                  /* stb_ds: n * dim */
    int inside;                 /* no point is outside the box, nor on the upper border of a periodic axis */
    int radii;
    real radius[RADII];
    uint8_t *truth[RADII];      /* n * n */
    int32_t m;                  /* query points: the last one is NaN */
    real query[3 * QUERIES];
    uint8_t *truth_at[RADII];   /* m * n */
} scene;

static int periodic_axis(const scene *s, int a) { return s->bounds < 8 && a < s->dim && (s->bounds >> a & 1); }

/* Distance along one axis; on a periodic one to the nearest image. */
static double gap_along(const scene *s, int a, double x, double y)
{
    double const length = (double)s->max[a] - (double)s->min[a];
    double gap = fabs(y - x);
    if (!periodic_axis(s, a)) return gap;
    gap = fmod(gap, length);
    return gap < length - gap ? gap : length - gap;
}

static int classify(const scene *s, const real *p, const real *q, double radius)
{
    double square = 0, slack = 4 * REAL_EPSILON * radius, distance;
    int a;
    for (a = 0; a < s->dim; a++) {
        double const gap = gap_along(s, a, (double)p[a], (double)q[a]);
        double scale = fabs((double)p[a]) + fabs((double)q[a]);
        if (periodic_axis(s, a)) scale += fabs((double)s->min[a]) + fabs((double)s->max[a]);
        square += gap * gap;
        slack += 4 * REAL_EPSILON * scale;
    }
    if (square != square) return OUTSIDE; /* a NaN is near nothing */
    distance = sqrt(square);
    if (s->exact) return square <= radius * radius ? WITHIN : OUTSIDE;
    return distance < radius - slack ? WITHIN : distance > radius + slack ? OUTSIDE : RIM;
}

/* Difference along one axis as the header documents it: b - a, and one box less or more where that is nearer. */
static real step_along(const scene *s, int a, real x, real y)
{
    real const length = s->max[a] - s->min[a];
    real d = y - x;
    if (!periodic_axis(s, a)) return d;
    if (d > length / 2) d = d - length;
    else if (d < -(length / 2)) d = d + length;
    return d;
}

static int in_box(const scene *s, const real *p)
{
    int a;
    for (a = 0; a < s->dim; a++) {
        if (!(p[a] >= s->min[a] && p[a] <= s->max[a])) return 0;
        if (periodic_axis(s, a) && p[a] == s->max[a]) return 0;
    }
    return 1;
}

/* The truth where rounding decides, if both points lie in the box. */
static int judge_rim(const scene *s, const real *p, const real *q, real radius)
{
    real d[3] = {0, 0, 0}, square;
    int a;
    if (!in_box(s, p) || !in_box(s, q)) return RIM;
    for (a = 0; a < s->dim; a++) d[a] = step_along(s, a, p[a], q[a]);
    square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    return square <= radius * radius ? WITHIN : OUTSIDE;
}

static int truth_of(const scene *s, const real *p, const real *q, real radius)
{
    int const kind = classify(s, p, q, (double)radius);
    return kind == RIM ? judge_rim(s, p, q, radius) : kind;
}

static void find_truth(scene *s)
{
    int k;
    int32_t i, j;
    for (k = 0; k < s->radii; k++) {
        s->truth[k] = NEW(uint8_t, s->n * s->n);
        s->truth_at[k] = NEW(uint8_t, s->m * s->n);
        for (i = 0; i < s->n; i++) for (j = 0; j < s->n; j++)
            s->truth[k][i * s->n + j] = (uint8_t)truth_of(s, s->pos + i * s->dim, s->pos + j * s->dim, s->radius[k]);
        for (i = 0; i < s->m; i++) for (j = 0; j < s->n; j++)
            s->truth_at[k][i * s->n + j] = (uint8_t)truth_of(s, s->query + i * s->dim, s->pos + j * s->dim, s->radius[k]);
    }
}

static void forget(scene *s)
{
    int k;
    for (k = 0; k < s->radii; k++) {
        free(s->truth[k]);
        free(s->truth_at[k]);
    }
    arrfree(s->pos);
    memset(s, 0, sizeof *s);
}

/* ------------------------------------------------------------------------------------------------
   Inputs
   ------------------------------------------------------------------------------------------------ */

static real edge(const scene *s, int a) { return s->max[a] - s->min[a]; }

static void add_point(scene *s, const real *p)
{
    int a;
    for (a = 0; a < s->dim; a++) arrput(s->pos, p[a]);
    s->n++;
}

static void fill_uniform(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) p[a] = between(s->min[a], s->max[a]);
        add_point(s, p);
    }
}

/* Three dense clouds: one in the middle, one at a corner of the box (its points wrap or lie outside), one anywhere. */
static void fill_clustered(scene *s, int32_t n)
{
    while (s->n < n) {
        int const cloud = s->n % 3;
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            real const center = cloud == 0 ? (s->min[a] + s->max[a]) / 2 : cloud == 1 ? s->min[a] : s->min[a] + edge(s, a) * (real)0.81;
            p[a] = center + s->cell * between((real)-0.2, (real)0.2);
        }
        add_point(s, p);
    }
}

/* Multiples of half a cell, from the lower to the upper border of the box: many distances are exactly the radius. */
static void fill_lattice(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) p[a] = s->min[a] + s->cell / 2 * (real)roll(2 * s->cells[a] + 1);
        add_point(s, p);
    }
}

static void fill_equal(scene *s, int32_t n)
{
    real p[3];
    int a;
    for (a = 0; a < 3; a++) p[a] = s->min[a] + s->cell / 2;
    while (s->n < n) add_point(s, p);
}

/* On the borders between cells and one nextafter to each side, the borders of the box included. */
static void fill_borders(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            int const k = roll(s->cells[a] + 1);
            real const border = k == s->cells[a] ? s->max[a] : s->min[a] + edge(s, a) * (real)k / (real)s->cells[a];
            p[a] = beside(border, roll(3) - 1);
        }
        add_point(s, p);
    }
}

/* A few big ones, far apart, and many small ones that touch them (1:10; see test_two_sizes for the radii). */
static void fill_two_sizes(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            if (s->n < 3) p[a] = s->min[a] + edge(s, a) * (real)(0.2 + 0.3 * s->n);
            else p[a] = s->pos[(s->n % 3) * s->dim + (a < s->dim ? a : 0)] + s->cell * between((real)-0.6, (real)0.6);
        }
        add_point(s, p);
    }
}

static void fill_single(scene *s, int32_t n)
{
    (void)n;
    fill_uniform(s, 1);
}

static void fill_empty(scene *s, int32_t n)
{
    (void)s;
    (void)n;
}

/* Up to two and a half boxes away on every side, some inside. */
static void fill_outside(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            real const far = roll(3) ? 0 : edge(s, a) * (real)2.5;
            p[a] = between(s->min[a] - far, s->max[a] + far);
        }
        add_point(s, p);
    }
}

/* On the faces, edges and corners of the box. */
static void fill_faces(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            int const side = roll(3);
            p[a] = side == 0 ? s->min[a] : side == 1 ? s->max[a] : between(s->min[a], s->max[a]);
        }
        add_point(s, p);
    }
}

typedef struct input { const char *name; void (*fill)(scene *, int32_t); } input;

static const input inputs[] = {
    {"uniform", fill_uniform},     {"clustered", fill_clustered}, {"lattice", fill_lattice}, {"all equal", fill_equal},
    {"cell borders", fill_borders}, {"two sizes", fill_two_sizes}, {"empty", fill_empty},     {"single", fill_single},
    {"outside", fill_outside},     {"faces of the box", fill_faces},
};

/* Cells per axis. `plain`: all numbers are short binary fractions; else the cell does not divide the box and nothing is round. */
typedef struct box { int cells[3], plain; } box;

static const box boxes[] = {
    {{1, 1, 1}, 1}, {{2, 3, 1}, 0}, {{3, 2, 3}, 1}, {{4, 3, 2}, 0}, {{5, 4, 4}, 1}, {{6, 4, 3}, 0},
};

static void set_box(scene *s, const box *b)
{
    static const real odd_min[3] = {(real)-0.31, (real)0.17, (real)5.3}, plain_min[3] = {0, -1, 2};
    int a;
    s->cell = b->plain ? (real)0.25 : (real)0.23;
    for (a = 0; a < 3; a++) {
        s->cells[a] = b->cells[a];
        s->min[a] = b->plain ? plain_min[a] : odd_min[a];
        s->max[a] = s->min[a] + (real)b->cells[a] * s->cell * (b->plain ? 1 : (real)1.11);
    }
}

/* Half a cell, one cell, several cells, and more than half of the longest side of the box (of a box of many cells, several
   cells are more than half of two sides already; walks through all of its cells are what takes the time of these tests). */
static void set_radii(scene *s)
{
    real longest = edge(s, 0);
    int a;
    for (a = 1; a < s->dim; a++) if (edge(s, a) > longest) longest = edge(s, a);
    s->radii = s->cells[0] < 5 ? 4 : 3;
    s->radius[0] = s->cell / 2;
    s->radius[1] = s->cell;
    s->radius[2] = s->cell * (real)2.5;
    s->radius[3] = longest * (real)0.75;
}

/* Query points: in the box, on its corners, outside, on a particle, NaN. */
static void set_queries(scene *s)
{
    int a;
    for (a = 0; a < s->dim; a++) {
        real *q = s->query + a;
        int const d = s->dim;
        q[0] = between(s->min[a], s->max[a]);
        q[d] = s->min[a];
        q[2 * d] = s->max[a];
        q[3 * d] = s->n ? s->pos[a] : s->min[a];
        q[4 * d] = s->max[a] + s->cell * (real)0.75;
        q[5 * d] = s->min[a] - edge(s, a) * (real)1.25;
        q[6 * d] = beside(s->max[a], -1);
        q[7 * d] = a == s->dim - 1 ? (real)NAN : s->min[a];
    }
    s->m = QUERIES;
}

static void set_inside(scene *s)
{
    int32_t i;
    s->inside = 1;
    for (i = 0; i < s->n; i++) s->inside &= in_box(s, s->pos + i * s->dim);
}

static void make_scene(scene *s, int dim, int bounds, const box *b, const input *in, int32_t n)
{
    memset(s, 0, sizeof *s);
    s->dim = dim;
    s->bounds = bounds;
    s->input = in->name;
    set_box(s, b);
    in->fill(s, n);
    s->exact = b->plain && (in->fill == fill_lattice || in->fill == fill_equal);
    set_radii(s);
    set_queries(s);
    if (s->exact) { /* the odd query points would round */
        s->m = 4;
        memcpy(s->query, s->query + 3 * dim, sizeof(real) * (size_t)dim);
    }
    set_inside(s);
    find_truth(s);
}

/* ------------------------------------------------------------------------------------------------
   Configurations: every build x walk x placement x cell order x records
   ------------------------------------------------------------------------------------------------ */

typedef struct config {
    ugrid_method method;
    ugrid_slot_layout layout;
    ugrid_placement placement;
    double size;    /* in cells */
    ugrid_walk walk;
    ugrid_cell_order order;
    int no_records;
} config;

static const char *const method_names[] = {"AUTO", "COUNT", "SORT", "FIXED", "LIST", "LIST_PACKED"};
static const char *const walk_names[] = {"AUTO", "CELLS", "STRIPS", "MODULAR", "HYBRID"};

static int sorting(const config *c) { return c->method == UGRID_COUNT || c->method == UGRID_SORT; }
static int strips(const config *c) { return c->walk == UGRID_STRIPS || c->walk == UGRID_HYBRID; }

/* Which combinations mean something. The header must accept all of these (test_product), and refuse those without
   meaning (test_walk_rules). */
static int sensible(const config *c)
{
    int const tight = c->placement == UGRID_TIGHT;
    if (strips(c) && (!sorting(c) || tight || c->order != UGRID_ROWS)) return 0;
    if (c->method == UGRID_LIST_PACKED && tight) return 0;
    if (c->no_records && (!sorting(c) || tight)) return 0;
    return c->method == UGRID_FIXED || c->layout == UGRID_SLOTS_BY_COLUMN;
}

static config *all_configs(void)
{
    static const double sizes[] = {0 /* LOOSE */, 0.4, 1, 1.7};
    config *list = NULL, c;
    int method, layout, size, walk, order, no_records;
    for (method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (layout = 0; layout < 2; layout++)
            for (size = 0; size < COUNT_OF(sizes); size++)
                for (walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++)
                    for (order = 0; order < 2; order++)
                        for (no_records = 0; no_records < 2; no_records++) {
                            c.method = (ugrid_method)method;
                            c.layout = (ugrid_slot_layout)layout;
                            c.placement = size ? UGRID_TIGHT : UGRID_LOOSE;
                            c.size = sizes[size];
                            c.walk = (ugrid_walk)walk;
                            c.order = (ugrid_cell_order)order;
                            c.no_records = no_records;
                            if (sensible(&c)) arrput(list, c);
                        }
    return list;
}

/* Without a box there are no strips, and the order of the cells means nothing. */
static int possible(const config *c, const scene *s)
{
    return s->bounds < 8 || (!strips(c) && c->order == UGRID_ROWS);
}

static int32_t split = 1; /* desc.split of every grid: cells are cut into this many along x */

static ugrid_desc desc_of(const scene *s, const config *c)
{
    ugrid_desc d;
    int a;
    memset(&d, 0, sizeof d);
    d.dim = s->dim;
    for (a = 0; a < 3; a++) {
        d.min[a] = s->min[a];
        d.max[a] = s->max[a];
        d.periodic[a] = periodic_axis(s, a);
    }
    d.cell = s->cell;
    d.unbounded = s->bounds >= 8;
    d.buckets = s->bounds == CROWDED ? 4 : 0;
    d.method = c->method;
    d.placement = c->placement;
    d.size = (real)c->size * s->cell;
    d.walk = c->walk;
    d.cell_order = c->order;
    d.slot_layout = c->layout;
    d.slots = s->n > 0 ? s->n : 1;
    d.no_records = c->no_records;
    d.inverse = sorting(c);
    d.split = split;
    return d;
}

static const scene *current_scene;
static const config *current_config;
static int current_radius;

static void describe_case(void)
{
    const scene *s = current_scene;
    const config *c = current_config;
    if (s) print_error("  input %s, n %d, dim %d, bounds %d (8, 9: unbounded; else periodic axes), cells %d %d %d, radius %.9g (number %d), cell %.9g\n",
                       s->input, (int)s->n, s->dim, s->bounds, s->cells[0], s->cells[1], s->cells[2],
                       (double)s->radius[current_radius], current_radius, (double)s->cell);
    if (c) print_error("  method %s, slots by %s, %s (size %g cells), walk %s, order %s, no_records %d\n", method_names[c->method],
                       c->layout ? "row" : "column", c->placement ? "TIGHT" : "LOOSE", c->size, walk_names[c->walk],
                       c->order ? "MORTON" : "ROWS", c->no_records);
}

/* Builds; in hashed buckets a particle of a TIGHT grid can be entered more than once, so the slots may need a second try. */
static void build(ugrid *g, const scene *s, const config *c)
{
    ugrid_desc d = desc_of(s, c);
    ugrid_result r = ugrid_build(g, &d, s->pos, 0, s->n);
    if (r == UGRID_CELL_FULL && d.unbounded && d.placement == UGRID_TIGHT) {
        d.slots = g->needed_slots;
        r = ugrid_build(g, &d, s->pos, 0, s->n);
    }
    CHECK_RESULT(r, UGRID_OK);
    CHECK(g->n == s->n && g->bad_id == -1);
}

/* ------------------------------------------------------------------------------------------------
   One grid against the truth. Each form of search marks what it met in a table; one judge looks at all of them.
   ------------------------------------------------------------------------------------------------ */

enum {
    FULL = 0, HALF = 1,     /* does (i, j) have to be met from both sides, or from one of the two? */
    SUPERSET = 0, EXACT = 2,/* may more be met than is within the radius? */
    SELF = 4                /* is (i, i) to be met? */
};

static uint8_t *met;        /* stb_ds: [row * n + id], how often */
static int32_t met_n;

static void begin_marks(int32_t rows, int32_t n)
{
    arrsetlen(met, (size_t)rows * (size_t)n);
    met_n = n;
    if (rows > 0 && n > 0) memset(met, 0, (size_t)rows * (size_t)n);
}

static void mark(int32_t row, int32_t id)
{
    CHECK(id >= 0 && id < met_n);
    CHECK(met[(size_t)row * (size_t)met_n + (size_t)id] < 255);
    met[(size_t)row * (size_t)met_n + (size_t)id]++;
}

static void judge_pair(int truth, int times, int kind)
{
    if (truth == WITHIN) CHECK(times == 1 && "found, and once");
    else if (truth == OUTSIDE && (kind & EXACT)) CHECK(times == 0 && "not found");
    else CHECK(times <= 1 && "met at most once");
}

static void judge(const scene *s, const uint8_t *truth, int kind)
{
    int32_t i, j;
    size_t const n = (size_t)s->n;
    for (i = 0; i < s->n; i++) {
        CHECK(met[(size_t)i * n + (size_t)i] == ((kind & SELF) != 0));
        for (j = 0; j < s->n; j++) {
            int times = met[(size_t)i * n + (size_t)j];
            if (i == j) continue;
            if (kind & HALF) times += met[(size_t)j * n + (size_t)i];
            judge_pair(truth[(size_t)i * n + (size_t)j], times, kind);
        }
    }
}

static void judge_rows(const scene *s, const uint8_t *truth, int32_t rows, int kind)
{
    int32_t q, j;
    for (q = 0; q < rows; q++)
        for (j = 0; j < s->n; j++)
            judge_pair(truth[(size_t)q * (size_t)s->n + (size_t)j], met[(size_t)q * (size_t)s->n + (size_t)j], kind);
}

/* What the first exact search of a grid found: all others must find the same, the rim included. */
static uint8_t *agreed;     /* stb_ds */

static void agree(const scene *s, int half)
{
    size_t const n = (size_t)s->n;
    size_t i, j;
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++) {
            CHECK(agreed[i * n + j] == agreed[j * n + i] && "i sees j and j sees i");
            if (half) CHECK(met[i * n + j] + met[j * n + i] == agreed[i * n + j]);
            else CHECK(met[i * n + j] == agreed[i * n + j] && met[j * n + i] == agreed[j * n + i]);
        }
}

/* ---- iterators ---- */

static void meet(const ugrid *g, int32_t row, ugrid_near *near)
{
    while (ugrid_next(near)) {
        CHECK(near->place >= 0 && near->place < g->n && ugrid_id(g, near->place) == near->id);
        mark(row, near->id);
    }
    CHECK(!ugrid_next(near)); /* it stays at its end */
}

static void check_near_within(const ugrid *g, const scene *s, int k)
{
    int32_t place, q;
    begin_marks(s->n, s->n);
    for (place = 0; place < s->n; place++) {
        ugrid_near near = ugrid_near_within(g, s->pos + ugrid_id(g, place) * s->dim, s->radius[k]);
        meet(g, ugrid_id(g, place), &near);
    }
    judge(s, s->truth[k], FULL | SUPERSET | SELF);
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) {
        ugrid_near near = ugrid_near_within(g, s->query + q * s->dim, s->radius[k]);
        meet(g, q, &near);
    }
    judge_rows(s, s->truth_at[k], s->m, SUPERSET);
}

static void check_near_place(const ugrid *g, const scene *s, int k)
{
    int32_t place;
    begin_marks(s->n, s->n);
    for (place = 0; place < s->n; place++) {
        ugrid_near near = ugrid_near_place(g, place, s->radius[k]);
        meet(g, ugrid_id(g, place), &near);
    }
    judge(s, s->truth[k], FULL | SUPERSET);
}

static void check_near_half(const ugrid *g, const scene *s, int k)
{
    int32_t place;
    begin_marks(s->n, s->n);
    for (place = 0; place < s->n; place++) {
        ugrid_near near = ugrid_near_half(g, place, s->radius[k]);
        meet(g, ugrid_id(g, place), &near);
    }
    judge(s, s->truth[k], HALF | SUPERSET);
}

/* The ranges of a walk are the same places in the same order. A grid without ranges says so. */
static void check_ranges(const ugrid *g, const scene *s, int k)
{
    int32_t place, at;
    int half;
    CHECK(ugrid_has_ranges(g) == (s->n > 0 && g->start && g->desc.placement == UGRID_LOOSE && !g->desc.unbounded));
    for (place = 0; place < s->n; place++) {
        for (half = 0; half < 2; half++) {
            ugrid_near one = half ? ugrid_near_half(g, place, s->radius[k]) : ugrid_near_place(g, place, s->radius[k]);
            ugrid_near range = one;
            if (!ugrid_has_ranges(g)) {
                CHECK(!ugrid_next_range(&range));
                return;
            }
            while (ugrid_next_range(&range)) {
                CHECK(0 <= range.begin && range.begin < range.end && range.end <= g->n);
                for (at = range.begin; at < range.end; at++)
                    if (at != place) CHECK(ugrid_next(&one) && one.place == at);
            }
            CHECK(!ugrid_next(&one) && !ugrid_next_range(&range));
        }
    }
}

static void check_iterators(const ugrid *g, const scene *s, int k)
{
    check_near_within(g, s, k);
    check_near_place(g, s, k);
    check_near_half(g, s, k);
    check_ranges(g, s, k);
}

/* ---- lists ---- */

typedef struct lists { int64_t *offsets; int32_t *ids; int64_t needed; } lists;

static void free_lists(lists *l)
{
    free(l->offsets);
    free(l->ids);
}

/* The list into a buffer that has room for more. */
static lists get_lists(const ugrid *g, real radius, int flags)
{
    lists l;
    int64_t const room = (int64_t)g->n * g->n;
    l.needed = -1;
    l.offsets = NEW(int64_t, g->n + 1);
    l.ids = NEW(int32_t, room);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, l.offsets, l.ids, room, &l.needed), UGRID_OK);
    CHECK(l.needed == l.offsets[g->n] && l.offsets[0] == 0);
    return l;
}

/* The same list again: count only, into a buffer that is exactly full, and into one that is one short. */
static void check_buffers(const ugrid *g, real radius, int flags, const lists *l)
{
    int64_t *offsets = NEW(int64_t, g->n + 1), needed = -1;
    int32_t *ids = NEW(int32_t, l->needed), *fewer = NEW(int32_t, l->needed - (l->needed > 0)), row = 0;
    size_t const bytes = sizeof *offsets * ((size_t)g->n + 1);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, NULL, 0, &needed), l->needed ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
    CHECK(needed == l->needed && memcmp(l->offsets, offsets, bytes) == 0);
    memset(offsets, 0xA5, bytes);
    CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, ids, needed, &needed), UGRID_OK);
    CHECK(needed == l->needed && memcmp(l->offsets, offsets, bytes) == 0);
    CHECK(memcmp(l->ids, ids, sizeof *ids * (size_t)needed) == 0);
    memset(offsets, 0xA5, bytes);
    if (needed > 0) {
        CHECK_RESULT(ugrid_neighbors(g, radius, flags, offsets, fewer, needed - 1, &needed), UGRID_BUFFER_TOO_SMALL);
        CHECK(needed == l->needed && memcmp(l->offsets, offsets, bytes) == 0);
        while (row < g->n && offsets[row + 1] < needed) row++;
        CHECK(memcmp(l->ids, fewer, sizeof *fewer * (size_t)offsets[row]) == 0 && "the rows that fit whole are there");
    }
    free(fewer);
    free(ids);
    free(offsets);
}

/* In a half list each pair stands in the row that near_half promises. */
static void check_half_row(const ugrid *g, int32_t row, int32_t other)
{
    real p[3], q[3];
    int sorted = g->start && g->desc.placement == UGRID_LOOSE;
    if (sorted || g->desc.placement == UGRID_TIGHT) {
        CHECK(row < other);
        return;
    }
    ugrid_point(g, row, p);
    ugrid_point(g, other, q);
    CHECK(ugrid_cell_at(g, p) < ugrid_cell_at(g, q) || (ugrid_cell_at(g, p) == ugrid_cell_at(g, q) && row < other));
}

static void check_list(const ugrid *g, const scene *s, int k, int flags)
{
    lists l = get_lists(g, s->radius[k], flags);
    int32_t *place_of = NEW(int32_t, s->n);
    int32_t row, place;
    int64_t e;
    int const half = (flags & UGRID_HALF) != 0, places = (flags & UGRID_PLACES) != 0;
    for (place = 0; place < s->n; place++) place_of[ugrid_id(g, place)] = place;
    begin_marks(s->n, s->n);
    for (row = 0; row < s->n; row++) {
        CHECK(l.offsets[row] <= l.offsets[row + 1]);
        for (e = l.offsets[row]; e < l.offsets[row + 1]; e++) {
            int32_t const other = l.ids[e];
            CHECK(other >= 0 && other < s->n);
            mark(places ? ugrid_id(g, row) : row, places ? ugrid_id(g, other) : other);
            if (half) check_half_row(g, places ? row : place_of[row], places ? other : place_of[other]);
        }
    }
    judge(s, s->truth[k], EXACT | (half ? HALF : FULL));
    if (flags == 0) {
        arrsetlen(agreed, arrlenu(met));
        if (arrlenu(met)) memcpy(agreed, met, arrlenu(met));
    }
    if (s->inside) agree(s, half);
    if (roll(3) == 0) check_buffers(g, s->radius[k], flags, &l);
    free(place_of);
    free_lists(&l);
}

static int32_t row_sum(const scene *s, int32_t id)
{
    int32_t j, sum = 0;
    for (j = 0; j < s->n; j++) sum += met[(size_t)id * (size_t)s->n + (size_t)j];
    return sum;
}

/* Counts against the list with the same flags, which is in `met`. */
static void check_counts(const ugrid *g, const scene *s, int k, int flags)
{
    int32_t *counts = NEW(int32_t, s->n);
    int32_t i;
    CHECK_RESULT(ugrid_count_neighbors(g, s->radius[k], flags, counts), UGRID_OK);
    for (i = 0; i < s->n; i++) CHECK(counts[i] == row_sum(s, flags & UGRID_PLACES ? ugrid_id(g, i) : i));
    free(counts);
}

/* ---- pairs ---- */

typedef struct pair_log { int64_t calls, stop_after; } pair_log;

static int log_pair(void *user, int32_t i, int32_t j)
{
    pair_log *log = (pair_log *)user;
    CHECK(i >= 0 && i < met_n && i != j);
    mark(i, j);
    return ++log->calls == log->stop_after;
}

static void check_pairs(const ugrid *g, const scene *s, int k)
{
    pair_log full = {0, -1}, half = {0, -1}, stopped = {0, 1};
    int64_t pairs = -1;
    begin_marks(s->n, s->n);
    CHECK_RESULT(ugrid_each_pair(g, s->radius[k], 0, log_pair, &full), UGRID_OK);
    judge(s, s->truth[k], FULL | EXACT);
    if (s->inside) agree(s, 0);
    begin_marks(s->n, s->n);
    CHECK_RESULT(ugrid_each_pair(g, s->radius[k], UGRID_HALF, log_pair, &half), UGRID_OK);
    judge(s, s->truth[k], HALF | EXACT);
    if (s->inside) agree(s, 1);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius[k], &pairs), UGRID_OK);
    CHECK(pairs == half.calls);
    if (s->inside) CHECK(2 * pairs == full.calls);
    if (pairs == 0) return;
    stopped.stop_after = 1 + pairs / 2;
    CHECK_RESULT(ugrid_each_pair(g, s->radius[k], UGRID_HALF, log_pair, &stopped), UGRID_STOPPED);
    CHECK(stopped.calls == stopped.stop_after && "not called again after it said stop");
}

/* ---- query points ---- */

/* One point: exactly full, one short, and no room at all. */
static void check_query(const ugrid *g, const scene *s, int k, int32_t q)
{
    const real *p = s->query + q * s->dim;
    int32_t found = -1, again = -1, *ids, e;
    ugrid_result const r = ugrid_query(g, p, s->radius[k], NULL, 0, &found);
    CHECK(r == (found > 0 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK));
    ids = NEW(int32_t, found);
    CHECK_RESULT(ugrid_query(g, p, s->radius[k], ids, found, &again), UGRID_OK);
    CHECK(again == found);
    for (e = 0; e < found; e++) mark(q, ids[e]);
    if (found > 0) {
        CHECK_RESULT(ugrid_query(g, p, s->radius[k], ids, found - 1, &again), UGRID_BUFFER_TOO_SMALL);
        CHECK(again == found);
    }
    free(ids);
}

static void check_queries(const ugrid *g, const scene *s, int k)
{
    int32_t q;
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) {
        const real last = s->query[(q + 1) * s->dim - 1];
        if (last == last) check_query(g, s, k, q);
    }
    judge_rows(s, s->truth_at[k], s->m, EXACT);
}

static void check_neighbors_at(const ugrid *g, const scene *s, int k)
{
    int64_t *offsets = NEW(int64_t, s->m + 1), needed = -1, again = -1, e;
    int32_t *ids, q;
    CHECK_RESULT(ugrid_neighbors_at(g, s->query, 0, s->m, s->radius[k], offsets, NULL, 0, &needed),
                 needed > 0 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
    ids = NEW(int32_t, needed);
    CHECK_RESULT(ugrid_neighbors_at(g, s->query, 0, s->m, s->radius[k], offsets, ids, needed, &again), UGRID_OK);
    CHECK(again == needed && offsets[0] == 0 && offsets[s->m] == needed);
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) for (e = offsets[q]; e < offsets[q + 1]; e++) mark(q, ids[e]);
    judge_rows(s, s->truth_at[k], s->m, EXACT);
    if (needed > 0) {
        int32_t *fewer = NEW(int32_t, needed - 1);
        CHECK_RESULT(ugrid_neighbors_at(g, s->query, 0, s->m, s->radius[k], offsets, fewer, needed - 1, &again), UGRID_BUFFER_TOO_SMALL);
        CHECK(again == needed && offsets[s->m] == needed && memcmp(ids, fewer, sizeof *ids * (size_t)(needed - 1)) == 0);
        free(fewer);
    }
    free(ids);
    free(offsets);
}

/* ---- stb_ds forms ---- */

static void check_stb(const ugrid *g, const scene *s, int k)
{
    ugrid_pair *pairs = NULL;
    int32_t *hits = NULL, q;
    ptrdiff_t e;
    begin_marks(s->m, s->n);
    for (q = 0; q < s->m; q++) {
        ptrdiff_t const from = arrlen(hits); /* it appends */
        real const last = s->query[(q + 1) * s->dim - 1];
        CHECK_RESULT(ugrid_arr_within(g, s->query + q * s->dim, s->radius[k], &hits), last == last ? UGRID_OK : UGRID_NOT_FINITE);
        for (e = from; e < arrlen(hits); e++) mark(q, hits[e]);
    }
    judge_rows(s, s->truth_at[k], s->m, EXACT);
    begin_marks(s->n, s->n);
    CHECK_RESULT(ugrid_arr_pairs(g, s->radius[k], &pairs), UGRID_OK);
    for (e = 0; e < arrlen(pairs); e++) mark(pairs[e].i, pairs[e].j);
    judge(s, s->truth[k], HALF | EXACT);
    if (s->inside) agree(s, 1);
    arrfree(hits);
    arrfree(pairs);
}

/* The full list is always checked, because the rest has to agree with it; of what shares its code, some by lot. */
static void check_searches(const ugrid *g, const scene *s, int k)
{
    int const flags = 1 + roll(3);
    check_list(g, s, k, 0);
    if (roll(2)) check_counts(g, s, k, 0);
    check_list(g, s, k, flags);
    if (roll(2)) check_counts(g, s, k, flags);
    if (roll(2)) check_pairs(g, s, k);
    else check_stb(g, s, k);
    check_queries(g, s, k);
    check_neighbors_at(g, s, k);
}

static void check_grid(ugrid *g, const scene *s, const config *c)
{
    int k;
    current_scene = s;
    current_config = c;
    build(g, s, c);
    CHECK_RESULT(ugrid_validate(g), UGRID_OK);
    for (k = 0; k < s->radii; k++) {
        current_radius = k;
        check_iterators(g, s, k);
        check_searches(g, s, k);
    }
}

/* ------------------------------------------------------------------------------------------------
   The products
   ------------------------------------------------------------------------------------------------ */

static void run_scene(const scene *s, const config *configs, ugrid *g)
{
    ptrdiff_t c;
    int a;
    for (c = 0; c < arrlen(configs); c++) {
        if (!possible(&configs[c], s)) continue;
        check_grid(g, s, &configs[c]);
        for (a = 0; a < 3 && s->bounds < 8; a++) CHECK(g->axis[a].cells == (a < s->dim ? s->cells[a] * (a == 0 ? split : 1) : 1));
    }
}

static void product(int dim)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    int bounds, b, in, counter = 0;
    dice = wl_seed((uint64_t)dim);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        if (dim == 2 && bounds >= 4 && bounds < UNBOUNDED) continue;
        for (b = 0; b < COUNT_OF(boxes); b++)
            for (in = 0; in < COUNT_OF(inputs); in++) {
                if (!chosen(counter++)) continue;
                make_scene(&s, dim, bounds, &boxes[b], &inputs[in], 10);
                run_scene(&s, configs, &g);
                forget(&s);
            }
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

static void test_product_2d(void **state) { (void)state; product(2); }
static void test_product_3d(void **state) { (void)state; product(3); }

/* Cells cut along x: everything that the product checks, once more in 2D. */
static void test_product_split(void **state)
{
    (void)state;
    split = 3;
    product(2);
    split = 1;
}

/* Every number of cells on every axis, against every set of periodic axes: where rings of cells close on themselves. */
static void test_cells_per_axis(void **state)
{
    static const config configs[] = {
        {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_ROWS, 0},    {UGRID_SORT, 0, UGRID_LOOSE, 0, UGRID_STRIPS, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_LOOSE, 0, UGRID_MODULAR, UGRID_MORTON, 0}, {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_HYBRID, UGRID_ROWS, 1},
        {UGRID_COUNT, 0, UGRID_TIGHT, 0.5, UGRID_CELLS, UGRID_ROWS, 0},  {UGRID_FIXED, 0, UGRID_TIGHT, 1, UGRID_MODULAR, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_TIGHT, 2.2, UGRID_CELLS, UGRID_ROWS, 0},   {UGRID_SORT, 0, UGRID_TIGHT, 4.7, UGRID_CELLS, UGRID_ROWS, 0},
    };
    static const int numbers[] = {1, 2, 3, 5};
    ugrid g = {0};
    scene s;
    int shape, bounds, c, in, counter = 0;
    (void)state;
    dice = wl_seed(11);
    describe = describe_case;
    for (shape = 0; shape < 64; shape++)
        for (bounds = 0; bounds < 8; bounds++)
            for (in = 0; in < 2; in++) {
                box b = {{0, 0, 0}, 0};
                if (!chosen(counter++)) continue;
                b.cells[0] = numbers[shape % 4];
                b.cells[1] = numbers[shape / 4 % 4];
                b.cells[2] = numbers[shape / 16];
                b.plain = in;
                make_scene(&s, 3, bounds, &b, &inputs[in ? 4 : 0], 10);
                for (c = 0; c < COUNT_OF(configs); c++) {
                    current_scene = &s;
                    current_config = &configs[c];
                    build(&g, &s, &configs[c]);
                    for (current_radius = 1; current_radius < 3; current_radius++) {
                        check_iterators(&g, &s, current_radius);
                        check_list(&g, &s, current_radius, 0);
                    }
                }
                forget(&s);
            }
    ugrid_free(&g);
    describe = NULL;
}

/* Four points, two pairs within 0.15; and a desc that takes them. */
static const real four_points[] = {(real)0.1, (real)0.1, (real)0.1, (real)0.2, (real)0.1, (real)0.1,
                                   (real)0.9, (real)0.9, (real)0.9, (real)0.9, (real)0.9, (real)0.8};

static ugrid_desc good_desc(void)
{
    ugrid_desc d;
    memset(&d, 0, sizeof d);
    d.dim = 3;
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = (real)0.25;
    d.method = UGRID_COUNT;
    return d;
}

static int gathers(const config *c) { return sorting(c) && !c->placement && !c->no_records; }

/* n particles on one spot, or in three clouds. Which configurations: those that gather, or the others; every manyth. */
static void crowd(int which_input, int bounds, int32_t n, int gathering, int every)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c, counter = bounds;
    make_scene(&s, 3, bounds, &boxes[4], &inputs[which_input], n);
    current_radius = 1;
    for (c = 0; c < arrlen(configs); c++) {
        if (gathers(&configs[c]) != gathering || counter++ % every) continue;
        current_scene = &s;
        current_config = &configs[c];
        build(&g, &s, &configs[c]);
        CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
        check_near_half(&g, &s, 1);
        check_list(&g, &s, 1, 0);
        check_list(&g, &s, 1, UGRID_PLACES | UGRID_HALF);
        check_counts(&g, &s, 1, UGRID_PLACES | UGRID_HALF);
        check_pairs(&g, &s, 1);
        check_neighbors_at(&g, &s, 1);
    }
    forget(&s);
    ugrid_free(&g);
    arrfree(configs);
}

/* More candidates than the buffers of the searches hold. */
static void test_crowds(void **state)
{
    int bounds;
    (void)state;
    dice = wl_seed(12);
    describe = describe_case;
    for (bounds = 0; bounds < 8; bounds += 5) {
        crowd(3, bounds, UGRID_I_GATHER + 6, 1, 6 * share());
        crowd(1, bounds, UGRID_I_HITS + 100, 0, 3 * share());
        crowd(3, bounds, 2 * UGRID_I_HITS + 1, 0, 3 * share());
    }
    describe = NULL;
}

/* Spheres of two sizes, 1:10. Whoever touches is met once by a half walk whose radius is the largest diameter; a TIGHT
   grid is built for boxes of that size. */
static void test_two_sizes(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    int bounds;
    ptrdiff_t c;
    int32_t i, j, touching;
    (void)state;
    dice = wl_seed(13);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[4], &inputs[5], 40);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            check_near_half(&g, &s, 1); /* radius[1] = cell: the diameter of the big ones */
            for (i = 0, touching = 0; i < s.n; i++) for (j = 0; j < i; j++) {
                double const reach = (double)s.cell / 2 * ((i < 3 ? 1 : 0.1) + (j < 3 ? 1 : 0.1));
                if (classify(&s, s.pos + 3 * i, s.pos + 3 * j, reach) != WITHIN) continue;
                CHECK(met[i * s.n + j] + met[j * s.n + i] == 1);
                touching++;
            }
            CHECK(touching > 5);
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* Pairs whose distance is the radius but for a few units in the last place, one of the two beside a border between cells, or
   the seam of a periodic axis: where a search that does not reach a little further than the radius loses one. */
static void test_rim(void **state)
{
    static const config configs[] = {
        {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_STRIPS, UGRID_ROWS, 0},  {UGRID_LIST, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_MORTON, 0},
        {UGRID_LIST, 0, UGRID_TIGHT, 0.3, UGRID_CELLS, UGRID_ROWS, 0},  {UGRID_SORT, 0, UGRID_TIGHT, 1, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_COUNT, 0, UGRID_TIGHT, 1.6, UGRID_CELLS, UGRID_ROWS, 0}, {UGRID_FIXED, 0, UGRID_TIGHT, 1.0000009, UGRID_CELLS, UGRID_ROWS, 0},
        {UGRID_LIST, 0, UGRID_TIGHT, 2.0000004, UGRID_CELLS, UGRID_MORTON, 0},
    };
    ugrid g = {0};
    scene s;
    int round, c, kinds[3] = {0, 0, 0};
    (void)state;
    dice = wl_seed(31);
    describe = describe_case;
    current_radius = 0;
    for (round = 0; round < 40000 / share(); round++) {
        real radius, other, p[3], q[3], twice[6];
        int const a = roll(2), up = roll(2);
        memset(&s, 0, sizeof s);
        s.input = "rim";
        s.dim = 2;
        s.bounds = roll(4);
        set_box(&s, &boxes[4 + roll(2)]);
        if (roll(2)) s.min[0] -= 7, s.max[0] -= 7; /* further from zero the numbers are coarser */
        s.radius[0] = radius = s.cell * between((real)0.1, (real)1.9);
        other = between(s.min[1 - a], s.max[1 - a]);
        q[a] = s.min[a] + edge(&s, a) * (real)roll(2 * s.cells[a] + 1) / (real)(2 * s.cells[a]); /* on a border, or half way: the box of
                                                                       a TIGHT particle as large as a cell then ends on two */
        q[a] = beside(beside(q[a], roll(3) - 1), roll(3) - 1);
        p[a] = up ? q[a] + radius : q[a] - radius;
        if (periodic_axis(&s, a) && p[a] < s.min[a]) p[a] += edge(&s, a);
        if (periodic_axis(&s, a) && p[a] >= s.max[a]) p[a] -= edge(&s, a);
        p[a] = beside(beside(p[a], roll(3) - 1), roll(3) - 1);
        p[1 - a] = q[1 - a] = other;
        if (!in_box(&s, p) || !in_box(&s, q)) continue;
        s.n = 2;
        memcpy(twice, p, 2 * sizeof *p);
        memcpy(twice + 2, q, 2 * sizeof *p);
        s.pos = twice;
        for (c = 0; c < COUNT_OF(configs); c++) {
            int const truth = judge_rim(&s, p, q, radius);
            int64_t pairs = -1;
            int32_t counts[2], ids[2], found = -1;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            kinds[truth]++;
            CHECK_RESULT(ugrid_count_pairs(&g, radius, &pairs), UGRID_OK);
            CHECK(pairs == (truth == WITHIN));
            CHECK_RESULT(ugrid_count_neighbors(&g, radius, 0, counts), UGRID_OK);
            CHECK(counts[0] == (truth == WITHIN) && counts[1] == (truth == WITHIN));
            CHECK_RESULT(ugrid_query(&g, p, radius, ids, 2, &found), UGRID_OK);
            CHECK(found == 1 + (truth == WITHIN));
        }
    }
    CHECK(kinds[OUTSIDE] > 100 && kinds[WITHIN] > 100);
    ugrid_free(&g);
    describe = NULL;
}

/* One particle in the middle of each cell tells in which order a walk visits the cells: CELLS and STRIPS row by row; MODULAR
   and HYBRID by labels, which repeat after 2 * rings + 1 cells (HYBRID: but along x, where its strips run). */
static void test_walk_order(void **state)
{
    enum { SIDE = 9 };
    ugrid g = {0};
    ugrid_desc d;
    real p[3 * SIDE * SIDE * SIDE];
    int walk, rings;
    int32_t i, place;
    (void)state;
    memset(&d, 0, sizeof d);
    d.dim = 3;
    d.max[0] = d.max[1] = d.max[2] = SIDE;
    d.cell = 1;
    d.method = UGRID_COUNT;
    for (i = 0; i < SIDE * SIDE * SIDE; i++) {
        p[3 * i] = (real)(i % SIDE) + (real)0.5;
        p[3 * i + 1] = (real)(i / SIDE % SIDE) + (real)0.5;
        p[3 * i + 2] = (real)(i / SIDE / SIDE) + (real)0.5;
    }
    for (walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++)
        for (rings = 1; rings <= 3; rings++) {
            int32_t const labels = walk == UGRID_MODULAR || walk == UGRID_HYBRID ? 2 * rings + 1 : SIDE;
            d.walk = (ugrid_walk)walk;
            CHECK_RESULT(ugrid_build(&g, &d, p, 0, SIDE * SIDE * SIDE), UGRID_OK);
            for (place = 0; place < g.n; place++) {
                ugrid_near near = ugrid_near_within(&g, p + 3 * place, (real)rings - (real)0.25);
                int32_t before = -1, visited = 0;
                for (; ugrid_next(&near); visited++) {
                    int32_t const x = near.id % SIDE, y = near.id / SIDE % SIDE, z = near.id / SIDE / SIDE;
                    int32_t const key = ((z % labels) * SIDE + y % labels) * SIDE + (walk == UGRID_HYBRID ? x : x % labels);
                    CHECK(key > before);
                    before = key;
                }
                CHECK(visited <= (2 * rings + 1) * (2 * rings + 1) * (2 * rings + 1) && visited >= (rings + 1) * (rings + 1) * (rings + 1));
            }
        }
    ugrid_free(&g);
}

/* A radius of a hundred thousand cells finds everything, in about the time of a small one. */
static void test_huge_radius(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int bounds;
    int64_t pairs = -1;
    (void)state;
    dice = wl_seed(32);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[5], &inputs[0], 20);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            CHECK_RESULT(ugrid_count_pairs(&g, s.cell * 100000, &pairs), UGRID_OK);
            CHECK(pairs == 190);
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* Boxes of the size of a cell touch two cells along an axis, never three, also where cell and width of a cell differ by rounding. */
static void test_spans(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    int k;
    (void)state;
    d.placement = UGRID_TIGHT;
    for (k = 2; k < 100; k++) {
        d.cell = 1 / (real)k;
        d.size = 0;
        CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
        CHECK(g.spans == 8);
        d.size = d.cell * (real)1.5;
        CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
        CHECK(g.spans == (k == 2 ? 8 : 27));
    }
    ugrid_free(&g);
}

/* ugrid_near_point is ugrid_near_within with the edge of a cell, and walks that cannot start visit nothing. */
static void test_near_point(void **state)
{
    ugrid g = {0}, none = {0};
    ugrid_near a, b;
    scene s;
    config const c = {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_ROWS, 0};
    real nowhere[3] = {(real)NAN, 0, 0}, far[3] = {0, 0, (real)INFINITY};
    (void)state;
    make_scene(&s, 3, 0, &boxes[4], &inputs[0], 50);
    build(&g, &s, &c);
    a = ugrid_near_point(&g, s.pos);
    b = ugrid_near_within(&g, s.pos, g.desc.cell);
    while (ugrid_next(&a)) CHECK(ugrid_next(&b) && a.id == b.id && a.place == b.place);
    CHECK(!ugrid_next(&b));
    a = ugrid_near_point(&g, nowhere);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_point(&g, far);
    CHECK(!ugrid_next(&a) && !ugrid_next_range(&a));
    a = ugrid_near_within(&g, s.pos, 0);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_within(&g, s.pos, -1);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_within(&g, s.pos, (real)NAN);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_within(&g, s.pos, (real)INFINITY);
    CHECK(!ugrid_next(&a));
    a = ugrid_near_point(&none, s.pos);
    CHECK(!ugrid_next(&a) && !ugrid_next_range(&a));
    forget(&s);
    ugrid_free(&g);
}

/* ------------------------------------------------------------------------------------------------
   Order, permutations, attributes
   ------------------------------------------------------------------------------------------------ */

/* The cell of a point well inside its cell, by the book. */
static int32_t cell_by_the_book(const scene *s, const ugrid_desc *d, const real *p)
{
    int32_t cell[3] = {0, 0, 0}, number = 0;
    int a, bit;
    for (a = 0; a < s->dim; a++) {
        double const width = ((double)s->max[a] - (double)s->min[a]) / s->cells[a];
        cell[a] = (int32_t)floor(((double)p[a] - (double)s->min[a]) / width);
    }
    if (d->cell_order == UGRID_ROWS) return (cell[2] * s->cells[1] + cell[1]) * s->cells[0] + cell[0];
    for (bit = 0; bit < 10; bit++)
        for (a = 0; a < s->dim; a++) number |= (cell[a] >> bit & 1) << (bit * s->dim + a);
    return number;
}

static void test_cell_numbers(void **state)
{
    ugrid g = {0};
    scene s;
    int dim, order;
    int32_t i;
    (void)state;
    dice = wl_seed(14);
    for (dim = 2; dim <= 3; dim++)
        for (order = 0; order < 2; order++) {
            config c = {UGRID_COUNT, 0, UGRID_LOOSE, 0, UGRID_CELLS, UGRID_ROWS, 0};
            ugrid_desc d;
            c.order = (ugrid_cell_order)order;
            make_scene(&s, dim, 1, &boxes[5], &inputs[0], 100);
            d = desc_of(&s, &c);
            build(&g, &s, &c);
            for (i = 0; i < s.n; i++) {
                int32_t const number = cell_by_the_book(&s, &d, s.pos + i * dim);
                CHECK(ugrid_cell_at(&g, s.pos + i * dim) == number && number < g.cell_count);
                CHECK(g.start[number] <= g.inverse[i] && g.inverse[i] < g.start[number + 1]);
            }
            forget(&s);
        }
    ugrid_free(&g);
}

/* Upper border, outside, and one nextafter to each side: which cell is that, by name. */
static void test_cells_of_borders(void **state)
{
    static const struct { real x; int32_t clamped, periodic; } points[] = {
        {0, 0, 0}, {(real)0.25, 1, 1}, {(real)0.5, 2, 2}, {(real)0.75, 3, 3}, {1, 3, 0}, {(real)1.25, 3, 1}, {(real)-0.25, 0, 3},
        {-7, 0, 0}, {(real)-7.5, 0, 2}, {5, 3, 0}, {(real)1e30, 3, 0}, {(real)-1e30, 0, 0},
    };
    ugrid g = {0};
    ugrid_desc d = {0};
    int k, periodic;
    (void)state;
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = (real)0.25;
    for (periodic = 0; periodic < 2; periodic++) {
        real p[2] = {0, 0};
        d.periodic[0] = periodic;
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 1), UGRID_OK);
        for (k = 0; k < COUNT_OF(points); k++) {
            p[0] = points[k].x;
            CHECK(ugrid_cell_at(&g, p) == (periodic ? points[k].periodic : points[k].clamped));
        }
        for (k = 1; k < 4; k++) {
            p[0] = beside((real)k / 4, -1);
            CHECK(ugrid_cell_at(&g, p) == k - 1);
            p[0] = beside((real)k / 4, 1);
            CHECK(ugrid_cell_at(&g, p) == k);
        }
        p[0] = beside(0, -1); /* -1e-45: no number in the box is that close to the upper border, so either end is right */
        CHECK(ugrid_cell_at(&g, p) == 0 || (periodic && ugrid_cell_at(&g, p) == 3));
        p[0] = beside(1, -1);
        CHECK(ugrid_cell_at(&g, p) == 3);
        p[0] = beside(1, 1);
        CHECK(ugrid_cell_at(&g, p) == (periodic ? 0 : 3));
    }
    ugrid_free(&g);
}

/* What is in one cell, as entries, in the order of the structure. */
static int32_t *entries_of(const ugrid *g, int32_t cell)
{
    int32_t *list = NULL, k;
    if (g->start) {
        for (k = g->start[cell]; k < g->start[cell + 1]; k++) arrput(list, g->order[k]);
    } else if (g->count) {
        for (k = 0; k < g->count[cell]; k++)
            arrput(list, g->slot[g->desc.slot_layout == UGRID_SLOTS_BY_ROW ? cell * g->desc.slots + k : k * g->cell_count + cell]);
    } else {
        for (k = g->head[cell]; k >= 0; k = g->next ? g->next[k] : g->record[k].link) arrput(list, k);
    }
    return list;
}

/* All builds put the same entries into each cell: ascending, in lists descending. COUNT and SORT are the same bit for bit. */
static void check_same_cells(const ugrid *g, const ugrid *other)
{
    int32_t cell;
    ptrdiff_t k;
    int const listed = g->head != NULL, turned = listed && !other->head;
    CHECK(g->cell_count == other->cell_count && g->entries == other->entries && g->spans == other->spans);
    for (cell = 0; cell < g->cell_count; cell++) {
        int32_t *mine = entries_of(g, cell), *theirs = entries_of(other, cell);
        CHECK(arrlen(mine) == arrlen(theirs));
        for (k = 0; k < arrlen(mine); k++) {
            CHECK(mine[k] == theirs[turned ? arrlen(mine) - 1 - k : k]);
            if (k > 0) CHECK(listed ? mine[k] < mine[k - 1] : mine[k] > mine[k - 1]);
        }
        arrfree(mine);
        arrfree(theirs);
    }
}

static void check_same_bits(const ugrid *a, const ugrid *b)
{
    size_t const n = (size_t)a->n, m = (size_t)a->entries;
    size_t k;
    CHECK(memcmp(a->start, b->start, sizeof *a->start * ((size_t)a->cell_count + 1)) == 0);
    CHECK(memcmp(a->order, b->order, sizeof *a->order * m) == 0);
    CHECK((a->record == NULL) == (b->record == NULL) && (a->inverse == NULL) == (b->inverse == NULL));
    for (k = 0; a->record && k < n; k++) /* by field: in a double build a record ends in 4 bytes that belong to nobody */
        CHECK(memcmp(a->record[k].x, b->record[k].x, sizeof a->record[k].x) == 0 && a->record[k].link == b->record[k].link);
    if (a->inverse) CHECK(memcmp(a->inverse, b->inverse, sizeof *a->inverse * n) == 0);
}

static void test_same_cells(void **state)
{
    config *configs = all_configs();
    ugrid g = {0}, first = {0};
    scene s;
    int bounds, in, dim;
    ptrdiff_t c;
    (void)state;
    dice = wl_seed(15);
    describe = describe_case;
    for (dim = 2; dim <= 3; dim++)
        for (bounds = 0; bounds < ALL_BOUNDS; bounds++)
            for (in = 0; in < COUNT_OF(inputs); in++) {
                if (dim == 2 && bounds >= 4 && bounds < UNBOUNDED) continue;
                make_scene(&s, dim, bounds, &boxes[5], &inputs[in], 60);
                for (c = 0; c < arrlen(configs); c++) {
                    config counting = configs[c];
                    if (!possible(&configs[c], &s) || configs[c].walk != UGRID_CELLS) continue;
                    counting.method = UGRID_COUNT;
                    current_scene = &s;
                    current_config = &configs[c];
                    build(&first, &s, &counting);
                    build(&g, &s, &configs[c]);
                    check_same_cells(&g, &first);
                    if (configs[c].method == UGRID_SORT) check_same_bits(&g, &first);
                }
                forget(&s);
            }
    ugrid_free(&g);
    ugrid_free(&first);
    arrfree(configs);
    describe = NULL;
}

/* Every number of cells from 1 to 5000 in one row: all numbers of passes and bits of the radix sort. */
static void test_sort_sizes(void **state)
{
    static const int32_t sizes[] = {1, 2, 3, 4, 5, 31, 32, 33, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 70000, 4194303, 4194304, 4194305};
    ugrid count = {0}, sort = {0};
    ugrid_desc d = {0};
    real p[2 * 500];
    int k, i;
    (void)state;
    dice = wl_seed(16);
    for (k = 0; k < COUNT_OF(sizes); k++) {
        d.dim = 2;
        d.max[0] = (real)sizes[k];
        d.max[1] = d.cell = 1;
        for (i = 0; i < 500; i++) {
            p[2 * i] = i % 10 ? between(0, d.max[0]) : d.max[0];
            p[2 * i + 1] = 0;
        }
        d.method = UGRID_COUNT;
        CHECK_RESULT(ugrid_build(&count, &d, p, 0, 500), UGRID_OK);
        d.method = UGRID_SORT;
        CHECK_RESULT(ugrid_build(&sort, &d, p, 0, 500), UGRID_OK);
        CHECK(count.cell_count == sizes[k]);
        check_same_bits(&count, &sort);
    }
    ugrid_free(&count);
    ugrid_free(&sort);
}

/* Rows of the neighbour lists: SORT and COUNT give ascending places where nothing wraps; others keep the order of the walk. */
static void test_row_order(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int32_t row;
    int64_t e;
    int in;
    (void)state;
    dice = wl_seed(17);
    describe = describe_case;
    for (in = 0; in < 2; in++) {
        make_scene(&s, 3, 0, &boxes[5], &inputs[in], 100);
        for (c = 0; c < arrlen(configs); c++) {
            lists l;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            l = get_lists(&g, s.radius[1], UGRID_PLACES);
            CHECK(l.needed > 100);
            for (row = 0; row < s.n; row++) {
                ugrid_near near = ugrid_near_place(&g, row, s.radius[1]);
                for (e = l.offsets[row]; e < l.offsets[row + 1]; e++) {
                    if (sorting(&configs[c]) && !configs[c].placement) {
                        if (configs[c].order == UGRID_ROWS && e > l.offsets[row]) CHECK(l.ids[e] > l.ids[e - 1]);
                        continue;
                    }
                    do CHECK(ugrid_next(&near)); while (near.place != l.ids[e]); /* in this order, perhaps with others between */
                }
            }
            free_lists(&l);
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

static void test_permutations(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int32_t k;
    size_t bytes, b;
    (void)state;
    dice = wl_seed(18);
    describe = describe_case;
    make_scene(&s, 3, 5, &boxes[3], &inputs[0], 100);
    for (c = 0; c < arrlen(configs); c++) {
        int const moves = sorting(&configs[c]) && !configs[c].placement;
        current_scene = &s;
        current_config = &configs[c];
        build(&g, &s, &configs[c]);
        CHECK((g.inverse != NULL) == moves && (g.record != NULL) == ((moves && !configs[c].no_records) || configs[c].method == UGRID_LIST_PACKED));
        for (k = 0; k < s.n; k++) {
            if (moves) CHECK(g.order[g.inverse[k]] == k && ugrid_id(&g, g.inverse[k]) == k);
            else CHECK(ugrid_id(&g, k) == k);
        }
        for (bytes = 1; bytes <= 17; bytes += bytes < 5 ? 1 : 3) {
            uint8_t *src = NEW(uint8_t, bytes * 100), *dst = NEW(uint8_t, bytes * 100), *back = NEW(uint8_t, bytes * 100);
            for (b = 0; b < bytes * 100; b++) src[b] = (uint8_t)roll(256);
            CHECK_RESULT(ugrid_gather(&g, src, bytes, dst), UGRID_OK);
            for (k = 0; k < s.n; k++) CHECK(memcmp(dst + (size_t)k * bytes, src + (size_t)ugrid_id(&g, k) * bytes, bytes) == 0);
            CHECK_RESULT(ugrid_scatter(&g, dst, bytes, back), UGRID_OK);
            CHECK(memcmp(src, back, bytes * 100) == 0);
            free(src);
            free(dst);
            free(back);
        }
    }
    forget(&s);
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* inverse = 0 asks for no inverse; without records positions come from the caller's array. */
static void test_optional_arrays(void **state)
{
    static const real p[] = {(real)0.5, (real)0.5, (real)0.1, (real)0.2, (real)1.75, (real)0.3};
    ugrid g = {0};
    ugrid_desc d = {0};
    real q[3];
    int32_t place;
    (void)state;
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = (real)0.25;
    d.periodic[0] = 1;
    d.method = UGRID_COUNT;
    for (d.no_records = 0; d.no_records < 2; d.no_records++) {
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_OK);
        CHECK(g.inverse == NULL && (g.record == NULL) == d.no_records);
        CHECK(g.slot == NULL && g.count == NULL && g.head == NULL && g.next == NULL);
        for (place = 0; place < 3; place++) {
            int32_t const id = ugrid_id(&g, place);
            ugrid_point(&g, place, q);
            CHECK(q[0] == (id == 2 ? (real)0.75 : p[2 * id]) && q[1] == p[2 * id + 1] && q[2] == 0);
        }
    }
    ugrid_free(&g);
}

static void test_cell_sums(void **state)
{
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int bounds, width, w;
    (void)state;
    dice = wl_seed(19);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[3], &inputs[bounds % 2 ? 8 : 0], 80);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            build(&g, &s, &configs[c]);
            for (width = 1; width < 6; width += 2) {
                real *values = NEW(real, 80 * width), *sums = NEW(real, g.cell_count * width), *want = NEW(real, g.cell_count * width);
                int32_t i;
                for (i = 0; i < g.cell_count * width; i++) want[i] = 0;
                for (i = 0; i < 80 * width; i++) values[i] = between(-1, 1);
                for (i = 0; i < 80; i++)
                    for (w = 0; w < width; w++) want[ugrid_cell_at(&g, s.pos + 3 * i) * width + w] += values[i * width + w];
                CHECK_RESULT(ugrid_cell_sums(&g, values, width, sums), UGRID_OK);
                for (i = 0; i < g.cell_count * width; i++) CHECK(sums[i] == want[i]); /* same order of additions, same bits */
                free(values);
                free(sums);
                free(want);
            }
        }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* Positions inside a larger struct give the same grid as tightly packed ones. */
static void test_stride(void **state)
{
    typedef struct body { int32_t tag; real x[3]; uint8_t color[4]; real mass; } body;
    config *configs = all_configs();
    ugrid tight = {0}, loose = {0};
    ugrid_desc tight_fit, strided_fit;
    body *bodies = NULL;
    scene s;
    ptrdiff_t c;
    int32_t i;
    int dim, a;
    (void)state;
    dice = wl_seed(20);
    describe = describe_case;
    for (dim = 2; dim <= 3; dim++) {
        make_scene(&s, dim, 1, &boxes[3], &inputs[0], 60);
        bodies = NEW(body, s.n);
        for (i = 0; i < s.n; i++) for (a = 0; a < dim; a++) bodies[i].x[a] = s.pos[i * dim + a];
        for (c = 0; c < arrlen(configs); c++) {
            ugrid_desc const d = desc_of(&s, &configs[c]);
            int64_t pairs, strided_pairs, *offsets = NEW(int64_t, s.n + 1), needed = -1;
            lists l;
            current_scene = &s;
            current_config = &configs[c];
            build(&tight, &s, &configs[c]);
            CHECK_RESULT(ugrid_build(&loose, &d, bodies[0].x, sizeof *bodies, s.n), UGRID_OK);
            check_same_cells(&loose, &tight);
            CHECK_RESULT(ugrid_validate(&loose), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&tight, s.radius[1], &pairs), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&loose, s.radius[1], &strided_pairs), UGRID_OK);
            CHECK(pairs == strided_pairs && pairs > 0);
            l = get_lists(&tight, s.radius[1], 0); /* query points with a stride: every particle's row, and itself */
            CHECK_RESULT(ugrid_neighbors_at(&loose, bodies[0].x, sizeof *bodies, s.n, s.radius[1], offsets, NULL, 0, &needed), UGRID_BUFFER_TOO_SMALL);
            CHECK(needed == l.needed + s.n);
            for (i = 0; i <= s.n; i++) CHECK(offsets[i] == l.offsets[i] + i);
            free_lists(&l);
            free(offsets);
        }
        { /* a stride that says what 0 stands for */
            size_t const plain = sizeof(real) * (size_t)dim;
            ugrid_desc plain_fit;
            int64_t *offsets = NEW(int64_t, s.n + 1), needed = -1, wanted = -1;
            memset(&plain_fit, 0, sizeof plain_fit);
            plain_fit.dim = dim;
            CHECK_RESULT(ugrid_fit(&plain_fit, s.pos, plain, s.n, NULL), UGRID_OK);
            CHECK_RESULT(ugrid_build(&loose, &plain_fit, s.pos, plain, s.n), UGRID_OK);
            CHECK_RESULT(ugrid_neighbors_at(&loose, s.pos, 0, s.n, s.radius[0], offsets, NULL, 0, &wanted), UGRID_BUFFER_TOO_SMALL);
            CHECK_RESULT(ugrid_neighbors_at(&loose, s.pos, plain, s.n, s.radius[0], offsets, NULL, 0, &needed), UGRID_BUFFER_TOO_SMALL);
            CHECK(needed == wanted && needed >= s.n);
            free(offsets);
        }
        CHECK_RESULT(ugrid_build(&loose, NULL, bodies[0].x, sizeof(real) * 3 - 1, s.n), UGRID_BAD_ARGUMENT);
        memset(&tight_fit, 0, sizeof tight_fit);
        tight_fit.dim = dim;
        strided_fit = tight_fit;
        CHECK_RESULT(ugrid_fit(&tight_fit, s.pos, 0, s.n, NULL), UGRID_OK);
        CHECK_RESULT(ugrid_fit(&strided_fit, bodies[0].x, sizeof *bodies, s.n, NULL), UGRID_OK);
        CHECK(memcmp(tight_fit.min, strided_fit.min, sizeof tight_fit.min) == 0 && memcmp(tight_fit.max, strided_fit.max, sizeof tight_fit.max) == 0);
        free(bodies);
        forget(&s);
    }
    ugrid_free(&tight);
    ugrid_free(&loose);
    arrfree(configs);
    describe = NULL;
}

/* In 2D nothing depends on what a desc says about a third axis. */
static void test_flat_desc(void **state)
{
    real const pos[8] = {(real)0.1, (real)0.5, (real)0.9, (real)0.5, (real)0.1, (real)0.6, (real)0.5, (real)0.5};
    ugrid plain = {0}, odd = {0};
    ugrid_desc d;
    int k;
    (void)state;
    for (k = 0; k < 8; k++) {
        int64_t pairs = -1, wanted = -2;
        memset(&d, 0, sizeof d);
        d.dim = 2;
        d.max[0] = d.max[1] = 1;
        d.cell = (real)0.25;
        d.periodic[0] = k % 2;
        d.placement = k % 4 < 2 ? UGRID_LOOSE : UGRID_TIGHT;
        d.cell_order = k < 4 ? UGRID_ROWS : UGRID_MORTON;
        CHECK_RESULT(ugrid_build(&plain, &d, pos, 0, 4), UGRID_OK);
        d.min[2] = 5;
        d.max[2] = 9;
        d.periodic[2] = 1;
        CHECK_RESULT(ugrid_build(&odd, &d, pos, 0, 4), UGRID_OK);
        CHECK(odd.cell_count == plain.cell_count && memcmp(&odd.axis[2], &plain.axis[2], sizeof odd.axis[2]) == 0);
        CHECK_RESULT(ugrid_validate(&odd), UGRID_OK);
        CHECK_RESULT(ugrid_count_pairs(&plain, (real)0.21, &wanted), UGRID_OK);
        CHECK_RESULT(ugrid_count_pairs(&odd, (real)0.21, &pairs), UGRID_OK);
        CHECK(pairs == wanted);
    }
    ugrid_free(&plain);
    ugrid_free(&odd);
}

/* The largest and smallest numbers there are: nothing overflows, and near is near. */
static void test_extreme_positions(void **state)
{
    real const huge = IS_FLOAT ? (real)3e38 : (real)1.7e308, tiny = IS_FLOAT ? (real)1e-45 : (real)4.9e-324;
    real points[3 * 8];
    config *configs = all_configs();
    ugrid g = {0};
    ptrdiff_t c;
    int k, bounds;
    int64_t pairs;
    scene s;
    (void)state;
    describe = describe_case;
    for (k = 0; k < 24; k++) points[k] = k % 4 == 0 ? huge : k % 4 == 1 ? -huge : k % 4 == 2 ? tiny : (real)0.5;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        memset(&s, 0, sizeof s);
        s.dim = 3;
        s.bounds = bounds;
        s.input = "extreme";
        set_box(&s, &boxes[4]);
        s.n = 8;
        for (c = 0; c < arrlen(configs); c++) {
            ugrid_desc d = desc_of(&s, &configs[c]);
            int32_t id, found;
            current_scene = &s;
            current_config = &configs[c];
            if (!possible(&configs[c], &s)) continue;
            d.slots = 64;
            CHECK_RESULT(ugrid_build(&g, &d, points, 0, 8), UGRID_OK);
            CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
            CHECK_RESULT(ugrid_count_pairs(&g, s.cell, &pairs), UGRID_OK);
            CHECK_RESULT(ugrid_query(&g, points + 3, s.cell, &id, 1, &found), found > 1 ? UGRID_BUFFER_TOO_SMALL : UGRID_OK);
        }
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* ------------------------------------------------------------------------------------------------
   Positions outside a periodic box: wherever they are given, all functions see the same numbers
   ------------------------------------------------------------------------------------------------ */

/* Two points whose distance is the radius but for a rounding: it depends on whether the second was moved into the box. */
static void test_pair_outside(void **state)
{
    real const pos[4] = {(real)0.777, (real)0.5, (real)1.91499996, (real)0.5}, radius = (real)0.137999952;
    ugrid g = {0};
    ugrid_desc d;
    int32_t bad;
    (void)state;
    memset(&d, 0, sizeof d);
    d.dim = 2;
    d.max[0] = d.max[1] = 1;
    d.cell = (real)0.2;
    d.periodic[0] = 1;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, 2), UGRID_OK);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    CHECK_RESULT(ugrid_verify(&g, radius, 2, 0, &bad), UGRID_OK);
    ugrid_free(&g);
}

/* Rows of all points in three ways, and by the test that the header states: the same, rim and all. */
static void check_rows_outside(const ugrid *g, const real *pos, int32_t n, real radius)
{
    int32_t *ids = NEW(int32_t, n), *hits = NULL, i, j, found;
    for (i = 0; i < n; i++) {
        const real *p = pos + i * g->desc.dim;
        arrsetlen(hits, 0);
        CHECK_RESULT(ugrid_query(g, p, radius, ids, n, &found), UGRID_OK);
        CHECK_RESULT(ugrid_arr_within(g, p, radius, &hits), UGRID_OK);
        CHECK(arrlen(hits) == found && same(hits, ids, (size_t)found * sizeof *ids));
        for (j = 0; j < n; j++) found -= ugrid_distance2(g, p, pos + j * g->desc.dim) <= radius * radius;
        CHECK(found == 0);
    }
    arrfree(hits);
    free(ids);
}

/* Points some periods away, in pairs whose distance is near the radius. */
static void scatter_outside(const ugrid_desc *d, real *pos, int32_t n, real radius)
{
    int32_t k;
    for (k = 0; k < n * d->dim; k++) {
        int const a = k % d->dim, of_a_pair = k >= d->dim && k / d->dim % 2;
        real const length = d->max[a] - d->min[a];
        pos[k] = of_a_pair ? pos[k - d->dim] + (a == 0 ? beside(radius, roll(5) - 2) : 0) : between(d->min[a], d->max[a]);
        pos[k] += length * (real)(roll(9) - 4);
    }
}

static void test_periods_outside(void **state)
{
    enum { N = 60, ROUNDS = 8 };
    real const radius = (real)0.137999952;
    real pos[3 * N];
    ugrid g = {0};
    int dim, method, tight, round, a;
    (void)state;
    dice = wl_seed(32);
    for (dim = 2; dim <= 3; dim++)
        for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
            for (tight = 0; tight < 2; tight++)
                for (round = 0; round < ROUNDS; round++) {
                    ugrid_desc d;
                    int32_t bad;
                    memset(&d, 0, sizeof d);
                    d.dim = dim;
                    d.method = (ugrid_method)method;
                    d.placement = tight ? UGRID_TIGHT : UGRID_LOOSE;
                    d.slots = N;
                    d.cell = (real)0.2;
                    d.no_records = round & 1;
                    for (a = 0; a < dim; a++) {
                        d.min[a] = round & 2 ? between(-1, 1) : 0;
                        d.max[a] = d.min[a] + 1 + (real)a / 7;
                        d.periodic[a] = a == 0 || roll(4) > 0;
                    }
                    if (tight && method == UGRID_LIST_PACKED) continue;
                    scatter_outside(&d, pos, N, radius);
                    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, N), UGRID_OK);
                    CHECK_RESULT(ugrid_verify(&g, radius, N, 0, &bad), UGRID_OK);
                    check_rows_outside(&g, pos, N, radius);
                }
    ugrid_free(&g);
}

/* ------------------------------------------------------------------------------------------------
   Refusals: each with its exact code, and the grid empty afterwards and fit for use
   ------------------------------------------------------------------------------------------------ */

static void check_empty_and_usable(ugrid *g)
{
    ugrid_desc const d = good_desc();
    ugrid_near near;
    int64_t pairs = -1;
    CHECK(g->n == 0);
    near = ugrid_near_within(g, four_points, 1);
    CHECK(!ugrid_next(&near));
    CHECK_RESULT(ugrid_validate(g), UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_count_pairs(g, 1, &pairs), UGRID_NOT_BUILT);
    CHECK(pairs == 0);
    CHECK_RESULT(ugrid_build(g, &d, four_points, 0, 4), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, (real)0.15, &pairs), UGRID_OK);
    CHECK(pairs == 2 && g->n == 4 && g->bad_id == -1);
}

typedef struct refusal { ugrid_result want; const char *what; void (*spoil)(ugrid_desc *); } refusal;

#define SPOIL(name, statement) static void name(ugrid_desc *d) { statement; }
SPOIL(dim_1, d->dim = 1)
SPOIL(dim_4, d->dim = 4)
SPOIL(dim_negative, d->dim = -2)
SPOIL(box_inverted, d->max[1] = -1)
SPOIL(box_flat, d->max[2] = d->min[2])
SPOIL(box_min_nan, d->min[0] = (real)NAN)
SPOIL(box_max_nan, d->max[1] = (real)NAN)
SPOIL(box_infinite, d->max[0] = (real)INFINITY)
SPOIL(box_too_long, d->min[0] = IS_FLOAT ? (real)-3e38 : (real)-1.7e308; d->max[0] = -d->min[0])
SPOIL(box_periodic_missing, d->max[0] = d->max[1] = d->max[2] = 0; d->periodic[2] = 1)
SPOIL(cell_negative, d->cell = -1)
SPOIL(cell_nan, d->cell = (real)NAN)
SPOIL(cell_infinite, d->cell = (real)INFINITY)
SPOIL(cell_missing_unbounded, d->cell = 0; d->unbounded = 1)
SPOIL(size_negative, d->placement = UGRID_TIGHT; d->size = -1)
SPOIL(size_nan, d->placement = UGRID_TIGHT; d->size = (real)NAN)
SPOIL(size_infinite, d->placement = UGRID_TIGHT; d->size = (real)INFINITY)
SPOIL(size_17_cells, d->placement = UGRID_TIGHT; d->size = 17 * d->cell)
SPOIL(slots_negative, d->method = UGRID_FIXED; d->slots = -1)
SPOIL(method_6, d->method = (ugrid_method)6)
SPOIL(method_negative, d->method = (ugrid_method)-1)
SPOIL(placement_2, d->placement = (ugrid_placement)2)
SPOIL(walk_5, d->walk = (ugrid_walk)5)
SPOIL(order_2, d->cell_order = (ugrid_cell_order)2)
SPOIL(layout_2, d->slot_layout = (ugrid_slot_layout)2)
SPOIL(buckets_negative, d->unbounded = 1; d->buckets = -1)
SPOIL(max_cells_negative, d->max_cells = -1)
SPOIL(unbounded_periodic, d->unbounded = 1; d->periodic[1] = 1)
SPOIL(strips_of_lists, d->method = UGRID_LIST; d->walk = UGRID_STRIPS)
SPOIL(strips_of_morton, d->cell_order = UGRID_MORTON; d->walk = UGRID_STRIPS)
SPOIL(strips_tight, d->placement = UGRID_TIGHT; d->walk = UGRID_STRIPS)
SPOIL(hybrid_of_slots, d->method = UGRID_FIXED; d->walk = UGRID_HYBRID)
SPOIL(hybrid_unbounded, d->unbounded = 1; d->walk = UGRID_HYBRID)
SPOIL(packed_tight, d->method = UGRID_LIST_PACKED; d->placement = UGRID_TIGHT)
SPOIL(alloc_without_free, d->allocator.alloc = (void *(*)(size_t, void *))(size_t)1)
SPOIL(free_without_alloc, d->allocator.free = (void (*)(void *, size_t, void *))(size_t)1)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc = (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(far_too_fine, d->cell = (real)1e-5)
SPOIL(one_cell_too_many, d->max_cells = 63)
SPOIL(morton_cells_too_many, d->cell = (real)0.2; d->max_cells = 511; d->cell_order = UGRID_MORTON)
SPOIL(slots_times_cells, d->method = UGRID_FIXED; d->slots = 1 << 26)

static const refusal refusals[] = {
    {UGRID_BAD_DIM, "dim 1", dim_1}, {UGRID_BAD_DIM, "dim 4", dim_4}, {UGRID_BAD_DIM, "dim -2", dim_negative},
    {UGRID_BAD_BOX, "inverted", box_inverted}, {UGRID_BAD_BOX, "flat", box_flat}, {UGRID_BAD_BOX, "min NaN", box_min_nan},
    {UGRID_BAD_BOX, "max NaN", box_max_nan}, {UGRID_BAD_BOX, "infinite", box_infinite}, {UGRID_BOX_TOO_WIDE, "length overflows", box_too_long},
    {UGRID_BAD_BOX, "periodic without a box", box_periodic_missing},
    {UGRID_BAD_CELL, "negative", cell_negative}, {UGRID_BAD_CELL, "NaN", cell_nan}, {UGRID_BAD_CELL, "infinite", cell_infinite},
    {UGRID_BAD_CELL, "unbounded without a cell", cell_missing_unbounded},
    {UGRID_BAD_SIZE, "negative", size_negative}, {UGRID_BAD_SIZE, "NaN", size_nan}, {UGRID_BAD_SIZE, "infinite", size_infinite},
    {UGRID_BAD_SLOTS, "negative", slots_negative},
    {UGRID_BAD_OPTION, "method 6", method_6}, {UGRID_BAD_OPTION, "method -1", method_negative}, {UGRID_BAD_OPTION, "placement 2", placement_2},
    {UGRID_BAD_OPTION, "walk 5", walk_5}, {UGRID_BAD_OPTION, "order 2", order_2}, {UGRID_BAD_OPTION, "layout 2", layout_2},
    {UGRID_BAD_OPTION, "buckets", buckets_negative}, {UGRID_BAD_OPTION, "max_cells", max_cells_negative},
    {UGRID_BAD_OPTION, "unbounded and periodic", unbounded_periodic},
    {UGRID_BAD_WALK, "strips of lists", strips_of_lists}, {UGRID_BAD_WALK, "strips of Morton", strips_of_morton},
    {UGRID_BAD_WALK, "strips, tight", strips_tight}, {UGRID_BAD_WALK, "hybrid of slots", hybrid_of_slots},
    {UGRID_BAD_WALK, "hybrid, unbounded", hybrid_unbounded},
    {UGRID_BAD_PLACEMENT, "packed, tight", packed_tight},
    {UGRID_BAD_ALLOCATOR, "alloc alone", alloc_without_free}, {UGRID_BAD_ALLOCATOR, "free alone", free_without_alloc},
    {UGRID_BAD_ALLOCATOR, "CUDA alloc alone", cuda_alloc_alone},
    {UGRID_TOO_MANY_CELLS, "10^15 cells", far_too_fine}, {UGRID_TOO_MANY_CELLS, "64 > 63", one_cell_too_many},
    {UGRID_TOO_MANY_CELLS, "8^3 > 511 Morton codes", morton_cells_too_many}, {UGRID_BAD_SLOTS, "slots x cells", slots_times_cells},
    {UGRID_BAD_SIZE, "17 cells", size_17_cells},
};

static const refusal *current_refusal;
static void describe_refusal(void) { print_error("  refusal: %s\n", current_refusal->what); }

/* Every bad desc, given to an empty grid and to one that holds something. */
static void test_bad_descs(void **state)
{
    ugrid g = {0};
    int k, full;
    (void)state;
    describe = describe_refusal;
    for (full = 0; full < 2; full++)
        for (k = 0; k < COUNT_OF(refusals); k++) {
            ugrid_desc d = good_desc(), out;
            ugrid_result r;
            current_refusal = &refusals[k];
            if (!full) ugrid_free(&g);
            refusals[k].spoil(&d);
            CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), refusals[k].want);
            check_empty_and_usable(&g);
            CHECK_RESULT(ugrid_reserve(&g, &d, 4), refusals[k].want);
            check_empty_and_usable(&g);
            r = ugrid_defaults(&out, &d);
            CHECK(r == refusals[k].want || (r == UGRID_OK && k >= COUNT_OF(refusals) - 5) || refusals[k].spoil == box_periodic_missing);
        }
    ugrid_free(&g);
    describe = NULL;
}

/* What the last refusal said is gone with the next call, also when that is refused for another reason. */
static void test_refusals_are_forgotten(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc(), bad = good_desc();
    real p[12];
    (void)state;
    memcpy(p, four_points, sizeof p);
    p[7] = (real)NAN;
    bad.dim = 9;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 4), UGRID_NOT_FINITE);
    CHECK(g.bad_id == 2 && g.needed_cells == 64);
    CHECK_RESULT(ugrid_build(&g, &bad, p, 0, 4), UGRID_BAD_DIM);
    CHECK(g.bad_id == -1 && g.needed_cells == 0);
    d.method = UGRID_FIXED;
    d.slots = 1;
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_CELL_FULL);
    CHECK(g.needed_slots == 2);
    CHECK_RESULT(ugrid_build(&g, &bad, p, 0, 4), UGRID_BAD_DIM);
    CHECK(g.needed_slots == 0 && g.n == 0 && g.entries == 0);
    g.cuda_error = 700; /* as a download leaves it */
    CHECK_RESULT(ugrid_build(&g, &bad, p, 0, 4), UGRID_BAD_DIM);
    CHECK(g.cuda_error == 0);
    ugrid_free(&g);
}

/* Calls with bad arguments. */
static void test_bad_calls(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real const bad_radii[] = {0, -1, (real)NAN, (real)INFINITY, (real)(IS_FLOAT ? 1e-30 : 1e-200), (real)(IS_FLOAT ? 1e30 : 1e200)};
    real values[4] = {1, 2, 3, 4}, sums[64], p[3] = {0, 0, 0}, nan_point[3] = {0, 0, (real)NAN};
    int64_t offsets[5], pairs, needed;
    int32_t ids[32], found, counts[4];
    int32_t *hits = NULL;
    ugrid_pair *stb_pairs = NULL;
    pair_log log = {0, 0};
    int k;
    (void)state;

    CHECK_RESULT(ugrid_defaults(NULL, &d), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_fit(NULL, four_points, 0, 4, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_build(NULL, &d, four_points, 0, 4), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_build(&g, &d, NULL, 0, 4), UGRID_BAD_ARGUMENT);
    check_empty_and_usable(&g);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, -1), UGRID_BAD_ARGUMENT);
    check_empty_and_usable(&g);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 3 * sizeof(real) - 1, 4), UGRID_BAD_ARGUMENT);
    check_empty_and_usable(&g);
    CHECK_RESULT(ugrid_reserve(NULL, &d, 4), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_reserve(&g, &d, -1), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_reserve(&g, NULL, 4), UGRID_BAD_BOX);
    d.cell = 0;
    CHECK_RESULT(ugrid_reserve(&g, &d, 4), UGRID_BAD_CELL);
    d = good_desc();

    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    for (k = 0; k < COUNT_OF(bad_radii); k++) {
        real const r = bad_radii[k];
        CHECK_RESULT(ugrid_query(&g, p, r, ids, 32, &found), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_count_pairs(&g, r, &pairs), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_count_neighbors(&g, r, 0, counts), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_neighbors(&g, r, 0, offsets, ids, 32, &needed), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, r, offsets, ids, 32, &needed), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_each_pair(&g, r, 0, log_pair, &log), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_arr_within(&g, p, r, &hits), UGRID_BAD_RADIUS);
        CHECK_RESULT(ugrid_arr_pairs(&g, r, &stb_pairs), UGRID_BAD_RADIUS);
    }
    CHECK_RESULT(ugrid_query(NULL, p, 1, ids, 32, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, NULL, 1, ids, 32, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, p, 1, NULL, 32, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, p, 1, ids, -1, &found), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, p, 1, ids, 32, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_query(&g, nan_point, 1, ids, 32, &found), UGRID_NOT_FINITE);
    CHECK_RESULT(ugrid_count_pairs(NULL, 1, &pairs), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_pairs(&g, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_neighbors(NULL, 1, 0, counts), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_neighbors(&g, 1, 0, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_count_neighbors(&g, 1, 4, counts), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_neighbors(NULL, 1, 0, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, NULL, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, NULL, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, ids, -1, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 0, offsets, ids, 32, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors(&g, 1, 64, offsets, ids, 32, &needed), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_neighbors_at(NULL, p, 0, 1, 1, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, NULL, 0, 1, 1, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, -1, 1, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 3, 1, 1, offsets, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, NULL, ids, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, offsets, NULL, 32, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, offsets, ids, -1, &needed), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, p, 0, 1, 1, offsets, ids, 32, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_neighbors_at(&g, NULL, 0, 0, 1, offsets, NULL, 0, &needed), UGRID_OK);
    CHECK(needed == 0 && offsets[0] == 0);
    CHECK_RESULT(ugrid_each_pair(NULL, 1, 0, log_pair, &log), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_each_pair(&g, 1, 0, NULL, &log), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_each_pair(&g, 1, UGRID_PLACES, log_pair, &log), UGRID_BAD_OPTION);
    CHECK_RESULT(ugrid_gather(NULL, values, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_gather(&g, NULL, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_gather(&g, values, 0, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_gather(&g, values, 4, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(NULL, values, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(&g, NULL, 4, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(&g, values, 0, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_scatter(&g, values, 4, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(NULL, values, 1, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(&g, NULL, 1, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(&g, values, 0, sums), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_cell_sums(&g, values, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_arr_within(NULL, p, 1, &hits), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_arr_within(&g, p, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_arr_pairs(&g, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_validate(NULL), UGRID_BAD_ARGUMENT);
    CHECK(log.calls == 0 && hits == NULL && stb_pairs == NULL && ugrid_bytes(NULL) == 0);
    CHECK(g.n == 4 && "a refused search leaves the grid alone");
    ugrid_free(&g);
    ugrid_free(&g);
    ugrid_free(NULL);
}

/* Every call that reads a grid, on one without particles. */
static void check_all_calls(const ugrid *g, ugrid_result want)
{
    real value = 1, sums[64], p[3] = {0, 0, 0};
    int64_t offsets[2] = {7, 7}, needed = 7, pairs = 7;
    int32_t found = 7, id = 7, *hits = NULL;
    ugrid_pair *stb_pairs = NULL;
    pair_log log = {0, 0};
    CHECK_RESULT(ugrid_cell_sums(g, &value, 1, sums), want);
    CHECK_RESULT(ugrid_gather(g, &value, 1, sums), want);
    CHECK_RESULT(ugrid_scatter(g, &value, 1, sums), want);
    CHECK_RESULT(ugrid_validate(g), want);
    CHECK_RESULT(ugrid_verify(g, 1, 5, 0, &id), want);
    CHECK_RESULT(ugrid_query(g, p, 1, NULL, 0, &found), want);
    CHECK_RESULT(ugrid_count_pairs(g, 1, &pairs), want);
    CHECK_RESULT(ugrid_neighbors(g, 1, 0, offsets, NULL, 0, &needed), want);
    CHECK(needed == 0);
    CHECK_RESULT(ugrid_neighbors(g, 1, UGRID_PLACES, offsets, NULL, 0, &needed), want);
    CHECK_RESULT(ugrid_neighbors_at(g, p, 0, 1, 1, offsets, NULL, 0, &needed), want);
    CHECK_RESULT(ugrid_count_neighbors(g, 1, 0, NULL), want);
    CHECK_RESULT(ugrid_each_pair(g, 1, 0, log_pair, &log), want);
    CHECK_RESULT(ugrid_arr_within(g, p, 1, &hits), want);
    CHECK_RESULT(ugrid_arr_pairs(g, 1, &stb_pairs), want);
    CHECK(found == 0 && pairs == 0 && needed == 0 && id == -1 && log.calls == 0 && hits == NULL && stb_pairs == NULL);
    CHECK(want != UGRID_OK || (offsets[0] == 0 && offsets[1] == 0));
}

/* A grid that was never built, was reserved only, refused, or freed; and one that was built without particles. */
/* Room for one id is used, whether one is all there are or not. */
static void test_room_for_one(void **state)
{
    static const real far[9] = {(real)0.125, 0, 0, (real)0.25, 0, 0, 1, 1, 1}; /* 2 is far from both */
    int k;
    (void)state;
    for (k = 0; k < 4; k++) {
        int const flags = (k % 2 ? UGRID_HALF : 0) | (k / 2 ? UGRID_PLACES : 0);
        ugrid g = {0};
        ugrid_desc const d = good_desc();
        int64_t offsets[4], needed = -1;
        int32_t ids[3] = {-7, -7, -7};
        CHECK_RESULT(ugrid_build(&g, &d, far, 0, 3), UGRID_OK);
        CHECK_RESULT(ugrid_neighbors(&g, (real)0.5, flags, offsets, ids, 1, &needed),
                     k % 2 ? UGRID_OK : UGRID_BUFFER_TOO_SMALL);
        CHECK(needed == (k % 2 ? 1 : 2) && offsets[3] == needed && ids[0] == 1 && ids[1] == -7);
        ugrid_free(&g);
    }
}

static void test_not_built(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    (void)state;
    check_all_calls(&g, UGRID_NOT_BUILT);
    CHECK(ugrid_bytes(&g) == 0);
    CHECK_RESULT(ugrid_reserve(&g, &d, 4), UGRID_OK);
    check_all_calls(&g, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_build(&g, &d, NULL, 0, 0), UGRID_OK);
    check_all_calls(&g, UGRID_OK);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, -1), UGRID_BAD_ARGUMENT);
    check_all_calls(&g, UGRID_NOT_BUILT);
    CHECK_RESULT(ugrid_build(&g, NULL, NULL, 0, 0), UGRID_OK);
    check_all_calls(&g, UGRID_OK);
    ugrid_free(&g);
    check_all_calls(&g, UGRID_NOT_BUILT);
}

/* A point that is not finite is near nothing, and told so by an empty grid, too. */
static void test_point_not_finite(void **state)
{
    static const real bad[] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    int32_t n, found, *hits = NULL;
    int a, kind;
    (void)state;
    for (n = 0; n <= 4; n += 4)
        for (a = 0; a < 3; a++)
            for (kind = 0; kind < 3; kind++) {
                real p[3] = {(real)0.1, (real)0.1, (real)0.1};
                d.periodic[a] = kind % 2;
                p[a] = bad[kind];
                CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, n), UGRID_OK);
                CHECK_RESULT(ugrid_query(&g, p, 1, NULL, 0, &found), UGRID_NOT_FINITE);
                CHECK(found == 0);
                CHECK_RESULT(ugrid_arr_within(&g, p, 1, &hits), UGRID_NOT_FINITE);
                CHECK(hits == NULL);
            }
    ugrid_free(&g);
}

/* A distance that overflows is no neighbour: without a box, a point may be as far away as numbers reach. */
static void test_distance_overflows(void **state)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_LIST, UGRID_LIST_PACKED};
    real const far_off = -REAL_LARGEST / 1000000, pos[] = {0, 0, 0, 0, far_off, 0, 0, REAL_LARGEST, 0};
    real const at[3] = {0, REAL_LARGEST, 0};
    int64_t offsets[2], needed;
    int32_t ids[4], found;
    size_t k;
    (void)state;
    for (k = 0; k < sizeof methods / sizeof methods[0]; k++) {
        ugrid g = {0};
        ugrid_desc d = {0};
        d.cell = 6;
        d.unbounded = 1;
        d.buckets = 1 << k;                     /* few: all particles are candidates */
        d.method = methods[k];
        CHECK_RESULT(ugrid_build(&g, &d, pos, 0, 3), UGRID_OK);
        CHECK_RESULT(ugrid_query(&g, at, 13, ids, 4, &found), UGRID_OK);
        CHECK(found == 1 && ids[0] == 2);
        CHECK_RESULT(ugrid_neighbors_at(&g, at, 0, 1, 13, offsets, ids, 4, &needed), UGRID_OK);
        CHECK(needed == 1 && offsets[1] == 1 && ids[0] == 2);
        CHECK_RESULT(ugrid_count_pairs(&g, 13, &needed), UGRID_OK);
        CHECK(needed == 0);
        CHECK(!(ugrid_distance2(&g, at, pos + 3) <= 169));
        ugrid_free(&g);
    }
}

/* Points that span more than the largest number are told so, with a box of their own and with one that is given. */
static void test_box_too_wide(void **state)
{
    ugrid g = {0};
    ugrid_desc d;
    real p[6] = {0, 0, 0, 1, 1, 1};
    int a;
    (void)state;
    for (a = 0; a < 3; a++) {
        memset(&d, 0, sizeof d);
        p[a] = REAL_LARGEST;
        p[3 + a] = -REAL_LARGEST;
        CHECK_RESULT(ugrid_fit(&d, p, 0, 2, NULL), UGRID_BOX_TOO_WIDE);
        memset(&d, 0, sizeof d);
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 2), UGRID_BOX_TOO_WIDE);
        check_empty_and_usable(&g);
        d.cell = 1;
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 2), UGRID_BOX_TOO_WIDE);
        d.unbounded = 1; /* what the comment says */
        CHECK_RESULT(ugrid_build(&g, &d, p, 0, 2), UGRID_OK);
        p[a] = 0;
        p[3 + a] = 1;
    }
    memset(&d, 0, sizeof d);
    d.dim = 2; /* a third number is not looked at */
    p[2] = REAL_LARGEST;
    p[5] = -REAL_LARGEST;
    CHECK_RESULT(ugrid_build(&g, &d, p, 3 * sizeof *p, 2), UGRID_OK);
    ugrid_free(&g);
}

/* Exactly the combinations that test_product runs are accepted. */
static void test_walk_rules(void **state)
{
    int method, placement, walk, order, unbounded;
    (void)state;
    for (method = 0; method <= 5; method++) for (placement = 0; placement < 2; placement++) for (walk = 0; walk <= 4; walk++)
        for (order = 0; order < 2; order++) for (unbounded = 0; unbounded < 2; unbounded++) {
            ugrid_desc d = good_desc(), out;
            ugrid g = {0};
            int const strip = walk == UGRID_STRIPS || walk == UGRID_HYBRID;
            int const sort = method == UGRID_AUTO || method == UGRID_COUNT || method == UGRID_SORT;
            int const bad_walk = strip && (!sort || placement || order || unbounded), bad_placement = method == UGRID_LIST_PACKED && placement;
            ugrid_result r;
            d.method = (ugrid_method)method;
            d.placement = (ugrid_placement)placement;
            d.walk = (ugrid_walk)walk;
            d.cell_order = (ugrid_cell_order)order;
            d.unbounded = unbounded;
            r = ugrid_build(&g, &d, four_points, 0, 4);
            CHECK(r == ugrid_defaults(&out, &d));
            if (bad_walk && bad_placement) CHECK(r == UGRID_BAD_WALK || r == UGRID_BAD_PLACEMENT);
            else CHECK_RESULT(r, bad_walk ? UGRID_BAD_WALK : bad_placement ? UGRID_BAD_PLACEMENT : UGRID_OK);
            if (r == UGRID_OK) CHECK(walk != UGRID_WALK_AUTO ? g.desc.walk == (ugrid_walk)walk :
                g.desc.walk == (sort && !placement && !order && !unbounded ? UGRID_STRIPS : UGRID_CELLS));
            if (r == UGRID_OK) CHECK(method != UGRID_AUTO ? g.desc.method == (ugrid_method)method : g.desc.method != UGRID_AUTO);
            ugrid_free(&g);
        }
}

/* NaN and Inf, at every place and axis, for every build: refused with the first one's number. */
static void test_not_finite(void **state)
{
    static const real bad[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    config *configs = all_configs();
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int dim, a, kind, box_given;
    int32_t i, bad_id;
    (void)state;
    dice = wl_seed(21);
    describe = describe_case;
    for (dim = 2; dim <= 3; dim++) {
        make_scene(&s, dim, 0, &boxes[3], &inputs[0], 9);
        for (c = 0; c < arrlen(configs); c++)
            for (a = 0; a < dim; a++) for (kind = 0; kind < 3; kind++) for (box_given = 0; box_given < 2; box_given++) {
                ugrid_desc d = desc_of(&s, &configs[c]);
                real *p = NEW(real, dim * 9);
                current_scene = &s;
                current_config = &configs[c];
                if (!box_given) memset(d.min, 0, sizeof d.min), memset(d.max, 0, sizeof d.max);
                memcpy(p, s.pos, sizeof *p * (size_t)(dim * 9));
                i = roll(9);
                p[i * dim + a] = bad[kind];
                if (i < 8) p[8 * dim] = (real)NAN; /* a later one does not count */
                CHECK_RESULT(ugrid_build(&g, &d, p, 0, 9), UGRID_NOT_FINITE);
                CHECK(g.bad_id == i);
                check_empty_and_usable(&g);
                memset(d.min, 0, sizeof d.min);
                memset(d.max, 0, sizeof d.max);
                CHECK_RESULT(ugrid_fit(&d, p, 0, 9, &bad_id), UGRID_NOT_FINITE);
                CHECK(bad_id == i);
                free(p);
            }
        forget(&s);
    }
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* A full cell: how many slots it takes is told, exactly, and with them the build works. */
static void test_cell_full(void **state)
{
    config *configs = all_configs();
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0}, counted = {0};
    scene s;
    ptrdiff_t c;
    int bounds;
    int32_t cell, fullest;
    (void)state;
    dice = wl_seed(22);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[3], &inputs[1], 200);
        for (c = 0; c < arrlen(configs); c++) {
            ugrid_desc d = desc_of(&s, &configs[c]);
            if (configs[c].method != UGRID_FIXED || !possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            d.method = UGRID_COUNT;
            CHECK_RESULT(ugrid_build(&counted, &d, s.pos, 0, s.n), UGRID_OK);
            for (cell = 0, fullest = 0; cell < counted.cell_count; cell++)
                if (counted.start[cell + 1] - counted.start[cell] > fullest) fullest = counted.start[cell + 1] - counted.start[cell];
            d.method = UGRID_FIXED;
            d.slots = fullest - 1;
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_CELL_FULL);
            CHECK(g.needed_slots == fullest);
            check_empty_and_usable(&g);
            ugrid_free(&g);
            d.allocator = allocator_of(&h);
            d.slots = 1;
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_CELL_FULL);
            CHECK(g.needed_slots == fullest);
            d.slots = fullest;
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_OK);
            CHECK(g.needed_slots == fullest && g.n == s.n);
            check_same_cells(&g, &counted);
            ugrid_free(&g);
            CHECK(h.live_blocks == 0 && !h.wrong && "nothing was stored beyond the last slot");
        }
        forget(&s);
    }
    ugrid_free(&g);
    ugrid_free(&counted);
    arrfree(configs);
    describe = NULL;
}

/* Cells beyond what was allowed: how many it would take is told; nothing overflows, however far one point is. */
static void test_too_many_cells(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real p[] = {0, 0, 0, 1, 1, 1, (real)0.5, (real)0.5, (real)0.5};
    (void)state;
    d.cell = (real)0.0009765625; /* 1/1024 */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == 1073741824 && g.n == 0);
    check_empty_and_usable(&g);
    d.cell = (real)0.125;
    d.max_cells = 511;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == 512);
    d.max_cells = g.needed_cells;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_OK);
    CHECK(g.needed_cells == 512 && g.cell_count == 512);

    memset(d.max, 0, sizeof d.max); /* the box of the points: one far point makes it huge */
    d.max_cells = 0;
    p[3] = p[4] = p[5] = (real)1e6;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == INT64_MAX && "more than an int64_t holds");
    check_empty_and_usable(&g);
    p[3] = p[4] = p[5] = IS_FLOAT ? (real)3e38 : (real)1e308;
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    CHECK(g.needed_cells == INT64_MAX);
    d.max_cells = INT64_MAX; /* allowed, but no int32_t can number them */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_TOO_MANY_CELLS);
    check_empty_and_usable(&g);
    d.unbounded = 1; /* what the message advises */
    CHECK_RESULT(ugrid_build(&g, &d, p, 0, 3), UGRID_OK);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    ugrid_free(&g);
}

/* More entries than an int32_t can number. Reserving reads no points, and refuses before it allocates. */
static void test_too_many_entries(void **state)
{
    ugrid g = {0};
    ugrid_desc d = good_desc();
    (void)state;
    CHECK_RESULT(ugrid_reserve(&g, &d, INT32_MAX), UGRID_TOO_MANY_ENTRIES);
    d.placement = UGRID_TIGHT; /* 8 entries each */
    CHECK_RESULT(ugrid_reserve(&g, &d, 268435456), UGRID_TOO_MANY_ENTRIES);
    d.cell = (real)0.0625;
    d.size = (real)0.9; /* 15 cells, 16 touched */
    CHECK_RESULT(ugrid_reserve(&g, &d, 524288), UGRID_TOO_MANY_ENTRIES);
    CHECK(ugrid_bytes(&g) == 0 && g.n == 0);
    check_empty_and_usable(&g);
    ugrid_free(&g);
}

/* ------------------------------------------------------------------------------------------------
   Memory
   ------------------------------------------------------------------------------------------------ */

/* One step that may run out of memory: then the grid is empty, and the same step works the next time. */
static int survive(ugrid *g, const ugrid_desc *d, const scene *s, int32_t n)
{
    int64_t pairs = -1, again = -1;
    int failures = 0;
    ugrid_result r = ugrid_build(g, d, s->pos, 0, n);
    if (r == UGRID_OUT_OF_MEMORY) {
        failures++;
        CHECK(g->n == 0);
        CHECK_RESULT(ugrid_validate(g), UGRID_NOT_BUILT);
        CHECK_RESULT(ugrid_count_pairs(g, s->radius[1], &pairs), UGRID_NOT_BUILT);
        CHECK(pairs == 0);
        r = ugrid_build(g, d, s->pos, 0, n);
    }
    CHECK_RESULT(r, UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius[1], &pairs), UGRID_OK);
    r = ugrid_validate(g);
    if (r == UGRID_OUT_OF_MEMORY) {
        failures++;
        r = ugrid_validate(g);
    }
    CHECK_RESULT(r, UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(g, s->radius[1], &again), UGRID_OK);
    CHECK(pairs == again && g->n == n);
    return failures;
}

/* All builds, first small, then larger, then smaller again, in one grid. How many steps ran out of memory? */
static int memory_scenario(heap *h, const scene *s, const config *configs)
{
    ugrid g = {0};
    int failures = 0;
    ptrdiff_t c;
    for (c = 0; c < arrlen(configs); c++) {
        ugrid_desc d = desc_of(s, &configs[c]);
        if (!possible(&configs[c], s) || configs[c].walk != UGRID_CELLS) continue;
        d.allocator = allocator_of(h);
        failures += survive(&g, &d, s, 10);
        failures += survive(&g, &d, s, s->n);
        failures += survive(&g, &d, s, 3);
        CHECK(h->live_bytes == ugrid_bytes(&g));
        if (c % 7 == 0) ugrid_free(&g);
    }
    ugrid_free(&g);
    return failures;
}

static void test_out_of_memory(void **state)
{
    config *configs = all_configs();
    scene s;
    int bounds;
    (void)state;
    dice = wl_seed(23);
    for (bounds = 1; bounds <= UNBOUNDED; bounds += 7) {
        int64_t total, k, failures = 0;
        heap h = {0, 0, 0, 0, 0, 0};
        make_scene(&s, 3, bounds, &boxes[3], &inputs[0], 40);
        CHECK(memory_scenario(&h, &s, configs) == 0 && h.calls > 50);
        total = h.calls;
        for (k = 1; k <= total; k++) {
            int failed;
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            failed = memory_scenario(&h, &s, configs); /* 0: less than half as much again did as well */
            CHECK(failed == 1 || (failed == 0 && h.calls > total));
            CHECK(h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong);
            failures += failed;
        }
        CHECK(failures > total / 2);
        forget(&s);
    }
    arrfree(configs);
}

/* What a grid holds that was just built, or reserved, for n of the points. */
static int64_t bytes_of(const ugrid_desc *given, const real *pos, int32_t n, int reserved)
{
    ugrid_desc d = *given;
    ugrid g = {0};
    int64_t bytes;
    memset(&d.allocator, 0, sizeof d.allocator);
    if (reserved) CHECK_RESULT(ugrid_reserve(&g, &d, n), UGRID_OK);
    else CHECK_RESULT(ugrid_build(&g, &d, pos, 0, n), UGRID_OK);
    bytes = ugrid_bytes(&g);
    ugrid_free(&g);
    return bytes;
}

/* 600 builds, each with one particle more: every array grows O(log n) times, to at most half more than it must, and a reserve to no more. */
static void check_growth(const ugrid_desc *given, const real *pos)
{
    enum { N = 600, GROWTHS = 17 }; /* 1.5^16 > 600, and one for the first */
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid_desc d = *given;
    ugrid g = {0};
    int32_t n;
    int b, held = 0;
    d.allocator = allocator_of(&h);
    for (n = 1; n <= N; n++) CHECK_RESULT(ugrid_build(&g, &d, pos, 0, n), UGRID_OK);
    for (b = 0; b < UGRID_BLOCKS; b++) held += g.block[b].bytes > 0;
    CHECK(h.calls <= held * GROWTHS && held >= 1);
    CHECK((double)ugrid_bytes(&g) <= 1.5 * (double)bytes_of(&d, pos, N, 0));
    CHECK_RESULT(ugrid_reserve(&g, &d, 2 * N), UGRID_OK);
    CHECK(ugrid_bytes(&g) == bytes_of(&d, pos, 2 * N, 1));
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
}

static void test_growth(void **state)
{
    enum { N = 600 };
    real *pos = NEW(real, 3 * N);
    int method, tight, unbounded, k;
    (void)state;
    dice = wl_seed(33);
    for (k = 0; k < 3 * N; k++) pos[k] = between(0, 1);
    for (method = UGRID_AUTO; method <= UGRID_LIST_PACKED; method++)
        for (tight = 0; tight < 2; tight++)
            for (unbounded = 0; unbounded < 2; unbounded++) {
                ugrid_desc d = good_desc();
                d.method = (ugrid_method)method;
                d.placement = tight ? UGRID_TIGHT : UGRID_LOOSE;
                d.unbounded = unbounded; /* as many buckets as particles: those grow, too */
                d.slots = N;
                d.inverse = 1;
                if (tight && method == UGRID_LIST_PACKED) continue;
                check_growth(&d, pos);
            }
    free(pos);
}

/* Where half as much again cannot be had, what is needed will do. */
static void test_growth_short_of_memory(void **state)
{
    enum { N = 101 };
    real *pos = NEW(real, 3 * N);
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid_desc d = good_desc();
    ugrid g = {0};
    int64_t calls;
    int k;
    (void)state;
    dice = wl_seed(34);
    for (k = 0; k < 3 * N; k++) pos[k] = between(0, 1);
    d.method = UGRID_LIST;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, N - 1), UGRID_OK);
    calls = h.calls;
    h.fail_at = calls + 1;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, N), UGRID_OK);
    CHECK(h.calls == calls + 2 && ugrid_bytes(&g) == bytes_of(&d, pos, N, 0) && g.n == N);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(pos);
}

/* A grid's allocator stays until ugrid_free; afterwards another may come. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    (void)state;
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_BAD_ALLOCATOR);
    CHECK(g.n == 0);
    CHECK_RESULT(ugrid_reserve(&g, &d, 4), UGRID_BAD_ALLOCATOR);
    memset(&d.allocator, 0, sizeof d.allocator);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_BAD_ALLOCATOR);
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong && h.calls > 0 && h.calls == h.frees);
    d.allocator = allocator_of(&other);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    ugrid_free(&g);
    CHECK(other.live_blocks == 0 && !other.wrong && other.calls > 0);
}

/* After a reserve, builds of up to n particles allocate nothing; building again the same does not either. */
static void test_reserve(void **state)
{
    static const int32_t sizes[] = {300, 0, 1, 299, 17, 300, 64, 65, 128};
    config *configs = all_configs();
    scene s;
    ptrdiff_t c;
    int bounds, k;
    (void)state;
    dice = wl_seed(24);
    describe = describe_case;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[3], &inputs[0], 300);
        for (c = 0; c < arrlen(configs); c++) {
            heap h = {0, 0, 0, 0, 0, 0};
            ugrid_desc d = desc_of(&s, &configs[c]);
            ugrid g = {0};
            int64_t calls;
            if (!possible(&configs[c], &s) || configs[c].walk == UGRID_MODULAR) continue;
            current_scene = &s;
            current_config = &configs[c];
            d.allocator = allocator_of(&h);
            d.slots = d.unbounded ? 4000 : 300;
            CHECK_RESULT(ugrid_reserve(&g, &d, 300), UGRID_OK);
            CHECK(g.n == 0 && ugrid_bytes(&g) == h.live_bytes && h.live_bytes > 0);
            calls = h.calls;
            for (k = 0; k < COUNT_OF(sizes); k++) {
                CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, sizes[k]), UGRID_OK);
                CHECK(g.n == sizes[k] && h.calls == calls);
            }
            CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
            ugrid_free(&g);
            CHECK(h.live_blocks == 0 && !h.wrong && ugrid_bytes(&g) == 0);
        }
        forget(&s);
    }
    arrfree(configs);
    describe = NULL;
}

/* UGRID_AUTO may choose another method for fewer particles; what was reserved has to do for that one too. */
static void test_reserve_for_automatic_method(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    ugrid_desc d = good_desc();
    real *p = NEW(real, 3 * 2000);
    int64_t calls;
    int k;
    (void)state;
    for (k = 0; k < 6000; k++) p[k] = between(0, 1);
    d.method = UGRID_AUTO;
    d.cell = (real)0.02; /* 125,000 cells: SORT for few particles, COUNT for many */
    d.allocator = allocator_of(&h);
    CHECK_RESULT(ugrid_reserve(&g, &d, 2000), UGRID_OK);
    calls = h.calls;
    for (k = 2000; k > 0; k /= 3) CHECK_RESULT(ugrid_build(&g, &d, p, 0, k), UGRID_OK);
    CHECK(h.calls == calls);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && !h.wrong);
    free(p);
}

/* ------------------------------------------------------------------------------------------------
   ugrid_validate: good grids pass everywhere above; here each array is damaged in turn
   ------------------------------------------------------------------------------------------------ */

/* Each returns 0 where the grid has nothing to damage. `full` is a cell with at least two entries, `bare` one with none. */
static int32_t full, bare;

static void find_cells(const ugrid *g)
{
    int32_t cell;
    full = bare = -1;
    for (cell = 0; cell < g->cell_count; cell++) {
        int32_t *list = entries_of(g, cell);
        if (arrlen(list) >= 2 && full < 0) full = cell;
        if (arrlen(list) == 0 && bare < 0) bare = cell;
        arrfree(list);
    }
}

static int32_t *slot_at(const ugrid *g, int32_t cell, int32_t k)
{
    return &g->slot[g->desc.slot_layout == UGRID_SLOTS_BY_ROW ? cell * g->desc.slots + k : k * g->cell_count + cell];
}

static int32_t *link_at(const ugrid *g, int32_t entry) { return g->next ? &g->next[entry] : &g->record[entry].link; }

#define DAMAGE(name, needs, statement) \
    static int name(ugrid *g) { if (!(needs)) return 0; statement; return 1; }
DAMAGE(start_too_late, g->start, g->start[0] = 1)
DAMAGE(start_before_0, g->start, g->start[0] = -1)
DAMAGE(start_one_on, g->start, g->start[full]++)
DAMAGE(start_one_back, g->start && full > 0, g->start[full + 1]--)
DAMAGE(start_ends_early, g->start, g->start[g->cell_count]--)
DAMAGE(start_ends_late, g->start, g->start[g->cell_count]++)
DAMAGE(start_falls, g->start, g->start[full] = g->start[full + 1] + 1)
DAMAGE(start_huge, g->start, g->start[full + 1] = INT32_MAX)
DAMAGE(order_twice, g->start, g->order[g->start[full]] = g->order[g->start[full] + 1])
DAMAGE(order_negative, g->start, g->order[g->start[full]] = -1)
DAMAGE(order_too_high, g->start, g->order[g->start[full]] = g->n * g->spans)
DAMAGE(order_other_cell, g->start, { int32_t const last = g->order[g->entries - 1]; g->order[g->entries - 1] = g->order[0]; g->order[0] = last; })
DAMAGE(inverse_swapped, g->inverse, { int32_t const x = g->inverse[0]; g->inverse[0] = g->inverse[1]; g->inverse[1] = x; })
DAMAGE(inverse_negative, g->inverse, g->inverse[g->n - 1] = -1)
DAMAGE(record_moved, g->record, g->record[g->n / 2].x[1] += (real)0.01)
DAMAGE(record_nan, g->record, g->record[0].x[0] = (real)NAN)
DAMAGE(record_z, g->record && g->desc.dim == 3, g->record[g->n - 1].x[2] = beside(g->record[g->n - 1].x[2], 1))
DAMAGE(record_wrong_id, g->record && g->start, g->record[0].link = g->record[1].link)
DAMAGE(count_more, g->count, g->count[full]++)
DAMAGE(count_less, g->count, g->count[full]--)
DAMAGE(count_of_nothing, g->count, g->count[bare] = 1)
DAMAGE(count_negative, g->count, g->count[full] = -1)
DAMAGE(count_huge, g->count, g->count[full] = INT32_MAX)
DAMAGE(slot_twice, g->slot, *slot_at(g, full, 0) = *slot_at(g, full, 1))
DAMAGE(slot_negative, g->slot, *slot_at(g, full, 0) = -1)
DAMAGE(slot_too_high, g->slot, *slot_at(g, full, 1) = g->n * g->spans)
DAMAGE(head_lost, g->head, g->head[full] = -1)
DAMAGE(head_skips, g->head, g->head[full] = *link_at(g, g->head[full]))
DAMAGE(head_of_nothing, g->head, g->head[bare] = g->head[full])
DAMAGE(head_too_high, g->head, g->head[bare] = g->n * g->spans)
DAMAGE(head_negative, g->head, g->head[full] = -2)
DAMAGE(next_in_a_circle, g->head, *link_at(g, *link_at(g, g->head[full])) = g->head[full])
DAMAGE(next_itself, g->head, *link_at(g, g->head[full]) = g->head[full])
DAMAGE(next_ends_early, g->head, *link_at(g, g->head[full]) = -1)
DAMAGE(next_too_high, g->head, *link_at(g, g->head[full]) = g->n * g->spans)
DAMAGE(entries_more, 1, g->entries++)
DAMAGE(entries_less, 1, g->entries--)
DAMAGE(first_cell_forgotten, g->head && g->head[0] >= 0, /* and so it is counted */
       { int32_t k = g->head[0]; for (; k >= 0; k = *link_at(g, k)) g->entries--; g->head[0] = -1; })

typedef int damage(ugrid *g);

static damage *const damages[] = {
    start_too_late, start_before_0, start_one_on, start_one_back, start_ends_early, start_ends_late, start_falls, start_huge,
    order_twice, order_negative, order_too_high, order_other_cell, inverse_swapped, inverse_negative, record_moved, record_nan,
    record_z, record_wrong_id, count_more, count_less, count_of_nothing, count_negative, count_huge, slot_twice, slot_negative,
    slot_too_high, head_lost, head_skips, head_of_nothing, head_too_high, head_negative, next_in_a_circle, next_itself,
    next_ends_early, next_too_high, entries_more, entries_less, first_cell_forgotten,
};

static int current_damage;
static void describe_damage(void)
{
    describe_case();
    print_error("  damage number %d\n", current_damage);
}

/* As build, in memory of that heap. */
static void build_in(ugrid *g, const scene *s, const config *c, heap *h)
{
    ugrid_desc d = desc_of(s, c);
    d.allocator = allocator_of(h);
    d.slots = 8 * s->n;
    CHECK_RESULT(ugrid_build(g, &d, s->pos, 0, s->n), UGRID_OK);
}

static void test_validate_finds_damage(void **state)
{
    config *configs = all_configs();
    int used[COUNT_OF(damages)] = {0};
    heap h = {0, 0, 0, 0, 0, 0}; /* its memory is filled: what a damaged count makes validate read has a value */
    ugrid g = {0};
    scene s;
    ptrdiff_t c;
    int bounds, k;
    (void)state;
    dice = wl_seed(25);
    describe = describe_damage;
    for (bounds = 0; bounds < ALL_BOUNDS; bounds++) {
        make_scene(&s, 3, bounds, &boxes[4], &inputs[bounds % 2], 40);
        for (c = 0; c < arrlen(configs); c++) {
            if (!possible(&configs[c], &s)) continue;
            current_scene = &s;
            current_config = &configs[c];
            for (k = 0; k < COUNT_OF(damages); k++) {
                current_damage = k;
                build_in(&g, &s, &configs[c], &h);
                find_cells(&g);
                if (full < 0 || bare < 0) break;
                if (!damages[k](&g)) continue;
                used[k] = 1;
                CHECK_RESULT(ugrid_validate(&g), UGRID_INVALID);
            }
            build_in(&g, &s, &configs[c], &h); /* a particle that moved after the build */
            s.pos[0] += s.cell * (real)1.5;
            if (s.bounds < UNBOUNDED) CHECK_RESULT(ugrid_validate(&g), UGRID_INVALID);
            s.pos[0] -= s.cell * (real)1.5;
        }
        forget(&s);
    }
    for (k = 0; k < COUNT_OF(damages); k++) CHECK(used[current_damage = k]);
    ugrid_free(&g);
    arrfree(configs);
    describe = NULL;
}

/* ------------------------------------------------------------------------------------------------
   Defaults, choices, texts
   ------------------------------------------------------------------------------------------------ */

static void test_defaults(void **state)
{
    ugrid_desc d, in;
    (void)state;
    CHECK_RESULT(ugrid_defaults(&d, NULL), UGRID_OK);
    CHECK(d.dim == 3 && d.slots == 32 && d.max_cells == 134217728 && d.method == UGRID_AUTO);
    in = good_desc();
    in.dim = 2;
    in.slots = 5;
    in.max_cells = 1000;
    CHECK_RESULT(ugrid_defaults(&d, &in), UGRID_OK);
    CHECK(d.dim == 2 && d.slots == 5 && d.max_cells == 1000 && d.cell == in.cell);
    CHECK_RESULT(ugrid_defaults(&in, &in), UGRID_OK); /* in place */
    CHECK(in.dim == 2 && in.slots == 5);
    in.max_cells = INT64_MAX;
    CHECK_RESULT(ugrid_defaults(&d, &in), UGRID_OK);
    CHECK(d.max_cells == 2147482624); /* 2^31 - 1024 */
}

/* desc NULL: the box of the points, about two particles per cell. */
static void test_fit(void **state)
{
    enum { N = 2000 };
    ugrid g = {0};
    ugrid_desc d;
    real *p = NEW(real, 3 * N);
    int32_t bad_id = 5;
    int k, a;
    (void)state;
    dice = wl_seed(26);
    for (k = 0; k < 3 * N; k++) p[k] = between(-3, 4);
    CHECK_RESULT(ugrid_build(&g, NULL, p, 0, N), UGRID_OK);
    CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
    CHECK(g.cell_count > N / 4 && g.cell_count < N);
    for (a = 0; a < 3; a++) {
        real low = p[a], high = p[a];
        for (k = 0; k < N; k++) {
            low = p[3 * k + a] < low ? p[3 * k + a] : low;
            high = p[3 * k + a] > high ? p[3 * k + a] : high;
        }
        CHECK(g.desc.min[a] == low && g.desc.max[a] == high);
    }
    d = good_desc(); /* a box and a cell that are given stay */
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, &bad_id), UGRID_OK);
    CHECK(d.max[0] == 1 && d.cell == (real)0.25 && bad_id == -1);
    d.cell = 0;
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_OK);
    CHECK(d.max[0] == 1 && d.cell > (real)0.08 && d.cell < (real)0.12); /* cbrt(2 / 2000) = 0.1 */
    memset(&d, 0, sizeof d);
    d.periodic[0] = 1;
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_BAD_BOX);
    memset(&d, 0, sizeof d);
    d.dim = 7;
    CHECK_RESULT(ugrid_fit(&d, p, 0, N, NULL), UGRID_BAD_DIM);
    d.dim = 3;
    CHECK_RESULT(ugrid_fit(&d, p, 0, -1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_fit(&d, NULL, 0, 1, NULL), UGRID_BAD_ARGUMENT);
    CHECK_RESULT(ugrid_fit(&d, p, 1, 1, NULL), UGRID_BAD_ARGUMENT);
    ugrid_free(&g);
    free(p);
}

/* Two points on a line: the cell is their distance, where that is a normal number below the largest; else 1. */
static void test_fit_ends(void **state)
{
    real const least = IS_FLOAT ? (real)1.17549435e-38 : (real)2.2250738585072014e-308;
    real const lengths[] = {least, 2 * least, REAL_LARGEST / 2, REAL_LARGEST}, cells[] = {1, 2 * least, REAL_LARGEST / 2, 1};
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(lengths); k++) {
        real p[4] = {0, 0, 0, 0};
        ugrid_desc d;
        memset(&d, 0, sizeof d);
        d.dim = 2;
        p[2] = lengths[k];
        CHECK_RESULT(ugrid_fit(&d, p, 0, 2, NULL), UGRID_OK);
        CHECK(d.cell == cells[k]);
    }
}

/* A thin cloud: the automatic cell is that of a line. */
static void test_fit_needle(void **state)
{
    enum { N = 1000 };
    real p[3 * N];
    ugrid g = {0};
    int32_t i;
    (void)state;
    dice = wl_seed(31);
    for (i = 0; i < N; i++) {
        p[3 * i] = (real)i;
        p[3 * i + 1] = between(0, (real)1e-7);
        p[3 * i + 2] = between(0, (real)1e-7);
    }
    CHECK_RESULT(ugrid_build(&g, NULL, p, 0, N), UGRID_OK);
    CHECK(g.cell_count > N / 4 && g.cell_count < N); /* not millions, for two axes that hold one cell each */
    ugrid_free(&g);
}

/* All points on a line, in a plane, on one spot near zero and far away: a box of its own for each. */
static void test_fit_flat(void **state)
{
    static const struct { real at[3], step[3]; } flats[] = {
        {{0, 0, 0}, {0, 0, 0}}, {{5, 5, 5}, {0, 0, 0}}, {{-5, 5, 0}, {1, 0, 0}}, {{0, 0, 7}, {1, 1, 0}}, {{0, 1, 0}, {0, 0, 1}},
        {{(real)1e30, 0, 0}, {0, 0, 0}}, {{(real)-1e30, (real)1e-30, 0}, {0, 1, 0}}, {{(real)1e-38, 0, 0}, {0, 0, 0}},
        {{0, 0, 0}, {(real)1e-30, (real)1e-30, (real)1e-30}},
    };
    ugrid g = {0};
    int f, a, dim;
    int32_t i, n;
    (void)state;
    for (f = 0; f < COUNT_OF(flats); f++)
        for (dim = 2; dim <= 3; dim++)
            for (n = 0; n < 60; n += n < 3 ? 1 : 28) {
                real p[3 * 60];
                ugrid_desc d;
                int64_t pairs = -1;
                memset(&d, 0, sizeof d);
                d.dim = dim;
                for (i = 0; i < n; i++) for (a = 0; a < dim; a++) p[i * dim + a] = flats[f].at[a] + flats[f].step[a] * (real)i;
                CHECK_RESULT(ugrid_build(&g, &d, p, 0, n), UGRID_OK);
                CHECK_RESULT(ugrid_validate(&g), UGRID_OK);
                CHECK(g.n == n);
                for (a = 0; a < dim; a++) CHECK(g.desc.min[a] < g.desc.max[a]);
                CHECK_RESULT(ugrid_count_pairs(&g, 1000, &pairs), UGRID_OK);
                CHECK(pairs == (int64_t)n * (n - 1) / 2);
            }
    ugrid_free(&g);
}

/* The automatic choice follows its reason, which names the method. */
static void test_choose(void **state)
{
    static const char names[][6] = {"", "COUNT", "SORT"};
    const char *why = NULL;
    ugrid_desc d = good_desc();
    ugrid g = {0};
    int64_t cells;
    int32_t n;
    int sorted = 0, counted = 0;
    (void)state;
    d.method = UGRID_AUTO;
    for (n = 0; n < 10000000; n = 10 * n + 1)
        for (cells = 1; cells < 10000000000; cells *= 10) {
            ugrid_method const m = ugrid_choose(&d, n, cells, &why);
            CHECK((m == UGRID_COUNT || m == UGRID_SORT) && ugrid_choose(&d, n, cells, NULL) == m);
            CHECK(why && strstr(why, names[m]) == why && strlen(why) > 20);
            CHECK(m == UGRID_COUNT || cells > n);
            sorted |= m == UGRID_SORT;
            counted |= m == UGRID_COUNT;
        }
    CHECK(sorted && counted);
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    CHECK(g.desc.method == ugrid_choose(&d, 4, g.cell_count, &why) && g.reason == why);
    d.method = UGRID_LIST;
    CHECK_RESULT(ugrid_build(&g, &d, four_points, 0, 4), UGRID_OK);
    CHECK(g.desc.method == UGRID_LIST && g.reason && g.reason != why);
    ugrid_free(&g);
}

/* Every result has a text that begins with its name and names what to change. */
static void test_texts(void **state)
{
    static const struct { ugrid_result r; const char *name, *field; } texts[] = {
        {UGRID_OK, "UGRID_OK", ""}, {UGRID_STOPPED, "UGRID_STOPPED", "callback"}, {UGRID_BAD_ARGUMENT, "UGRID_BAD_ARGUMENT", "stride"},
        {UGRID_BAD_DIM, "UGRID_BAD_DIM", "desc.dim"}, {UGRID_BAD_BOX, "UGRID_BAD_BOX", "desc.min"}, {UGRID_BAD_CELL, "UGRID_BAD_CELL", "desc.cell"},
        {UGRID_BAD_SIZE, "UGRID_BAD_SIZE", "desc.size"}, {UGRID_BAD_SLOTS, "UGRID_BAD_SLOTS", "desc.slots"},
        {UGRID_BAD_OPTION, "UGRID_BAD_OPTION", "max_cells"}, {UGRID_BAD_WALK, "UGRID_BAD_WALK", "desc.walk"},
        {UGRID_BAD_PLACEMENT, "UGRID_BAD_PLACEMENT", "desc.method"}, {UGRID_BAD_ALLOCATOR, "UGRID_BAD_ALLOCATOR", "desc.allocator"},
        {UGRID_BAD_RADIUS, "UGRID_BAD_RADIUS", "radius"}, {UGRID_NOT_FINITE, "UGRID_NOT_FINITE", "grid.bad_id"},
        {UGRID_TOO_MANY_CELLS, "UGRID_TOO_MANY_CELLS", "desc.max_cells"}, {UGRID_TOO_MANY_ENTRIES, "UGRID_TOO_MANY_ENTRIES", "desc.size"},
        {UGRID_CELL_FULL, "UGRID_CELL_FULL", "grid.needed_slots"}, {UGRID_BUFFER_TOO_SMALL, "UGRID_BUFFER_TOO_SMALL", "size"},
        {UGRID_OUT_OF_MEMORY, "UGRID_OUT_OF_MEMORY", "desc.allocator"}, {UGRID_NOT_BUILT, "UGRID_NOT_BUILT", "ugrid_build"},
        {UGRID_INVALID, "UGRID_INVALID", "damaged"}, {UGRID_CUDA_ERROR, "UGRID_CUDA_ERROR", "cuda_error"},
        {UGRID_BOX_TOO_WIDE, "UGRID_BOX_TOO_WIDE", "span more than the largest"}, {UGRID_BAD_ROWS, "UGRID_BAD_ROWS", "desc.rows"},
    };
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == UGRID_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = ugrid_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].name) == text && strstr(text, texts[k].field) != NULL);
        CHECK(strncmp(text + strlen(texts[k].name), ": ", 2) == 0);
        for (other = 0; other < k; other++) CHECK(strcmp(text, ugrid_result_text((ugrid_result)other)) != 0);
    }
    CHECK(strstr(ugrid_result_text(UGRID_BAD_ARGUMENT), "in bytes")); /* a stride of 3 counts numbers */
    CHECK(ugrid_result_text((ugrid_result)-1) && ugrid_result_text(UGRID_RESULT_COUNT) && ugrid_result_text((ugrid_result)1000));
}

static void test_version(void **state)
{
    (void)state;
    CHECK(ugrid_version() == 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + UGRID_VERSION_PATCH);
    CHECK(ugrid_version() > 0);
    CHECK(sizeof(ugrid_record) == (IS_FLOAT ? 16 : 32));
}

/* ------------------------------------------------------------------------------------------------
   Random operations on one grid that is never made anew
   ------------------------------------------------------------------------------------------------ */

static int random_step, random_seed;
static void describe_random(void)
{
    print_error("  step %d; replay with UGRID_TEST_SEED=%d\n", random_step, random_seed);
    describe_case();
}

/* Another scene, and a configuration that suits it. */
static void random_scene(scene *s, config *c, const config *configs)
{
    box b;
    int a, const_dim = 2 + roll(2), bounds;
    do bounds = roll(ALL_BOUNDS); while (const_dim == 2 && bounds >= 4 && bounds < UNBOUNDED);
    for (a = 0; a < 3; a++) b.cells[a] = 1 + roll(6);
    b.plain = roll(2);
    forget(s);
    make_scene(s, const_dim, bounds, &b, &inputs[roll(COUNT_OF(inputs))], roll(40));
    do *c = configs[roll((int)arrlen(configs))]; while (!possible(c, s));
    if (c->placement) c->size = 0.05 + 3 * (double)wl_u(&dice);
}

/* A build that is refused: what, is drawn from the table (without its allocators: here they are given). */
static void random_refusal(ugrid *g, heap *h)
{
    const refusal *r;
    ugrid_desc d = good_desc();
    do r = &refusals[roll(COUNT_OF(refusals))]; while (r->want == UGRID_BAD_ALLOCATOR);
    d.allocator = allocator_of(h);
    r->spoil(&d);
    CHECK_RESULT(ugrid_build(g, &d, four_points, 0, 4), r->want);
    CHECK(g->n == 0);
}

static void random_search(const ugrid *g, const scene *s)
{
    int const k = current_radius = roll(s->radii);
    check_list(g, s, k, 0);
    switch (roll(6)) {
    case 0: check_iterators(g, s, k); break;
    case 1: check_pairs(g, s, k); break;
    case 2: check_list(g, s, k, roll(4)); break;
    case 3: check_queries(g, s, k); break;
    case 4: check_neighbors_at(g, s, k); break;
    default: CHECK_RESULT(ugrid_validate(g), UGRID_OK);
    }
}

static void test_random_operations(void **state)
{
    int const steps = environment("UGRID_TEST_STEPS", 8000 / share());
    config *configs = all_configs(), c;
    heap h = {0, 0, 0, 0, 0, 0};
    ugrid g = {0};
    scene s;
    int built = 0;
    (void)state;
    random_seed = environment("UGRID_TEST_SEED", (int)arrlen(configs)); /* the same each run: change it to look further */
    print_message("random operations: UGRID_TEST_SEED=%d\n", random_seed);
    dice = wl_seed((uint64_t)random_seed);
    describe = describe_random;
    current_scene = &s;
    current_config = &c;
    memset(&s, 0, sizeof s);
    for (random_step = 0; random_step < steps; random_step++) {
        int const action = roll(20);
        ugrid_desc d;
        if (action < 8 || !built) {
            random_scene(&s, &c, configs);
            d = desc_of(&s, &c);
            d.allocator = allocator_of(&h);
            if (d.placement && d.method == UGRID_FIXED) d.slots = 125 * s.n + 1; /* all entries in one bucket */
            if (roll(3) == 0) CHECK_RESULT(ugrid_reserve(&g, &d, s.n + roll(20)), UGRID_OK);
            CHECK_RESULT(ugrid_build(&g, &d, s.pos, 0, s.n), UGRID_OK);
            built = 1;
        } else if (action == 8) {
            random_refusal(&g, &h);
            built = 0;
        } else if (action == 9) {
            ugrid_free(&g);
            CHECK(h.live_blocks == 0);
            built = 0;
        } else {
            random_search(&g, &s);
        }
        CHECK(h.live_bytes == ugrid_bytes(&g) && !h.wrong);
    }
    forget(&s);
    ugrid_free(&g);
    CHECK(h.live_blocks == 0 && h.calls == h.frees);
    arrfree(configs);
    describe = NULL;
}

/* ------------------------------------------------------------------------------------------------
   Large workloads, against totals from elsewhere
   ------------------------------------------------------------------------------------------------ */

static real *reals_of(const float *p, size_t count)
{
    real *out = NEW(real, count);
    size_t k;
    for (k = 0; k < count; k++) out[k] = (real)p[k];
    return out;
}

static ugrid_desc unit_desc(real radius, ugrid_method method, ugrid_walk walk)
{
    ugrid_desc d;
    memset(&d, 0, sizeof d);
    d.dim = 3;
    d.max[0] = d.max[1] = d.max[2] = 1;
    d.cell = radius;
    d.method = method;
    d.walk = walk;
    d.slots = 100;
    return d;
}

/* A few pairs at the rim go the other way in double. */
static void check_total(int64_t got, int64_t want)
{
    int64_t const rim = IS_FLOAT ? 0 : 100;
    if (got < want - rim || got > want + rim) print_error("got %lld, want %lld\n", (long long)got, (long long)want);
    CHECK(got >= want - rim && got <= want + rim);
}

static void check_workload(const real *pos, int32_t n, real radius, ugrid_method method, ugrid_walk walk, int64_t want)
{
    ugrid_desc const d = unit_desc(radius, method, walk);
    ugrid g = {0};
    int64_t pairs = -1, sum = 0, needed = -1, *offsets;
    int32_t *counts = NEW(int32_t, n), i;
    CHECK_RESULT(ugrid_build(&g, &d, pos, 0, n), UGRID_OK);
    CHECK_RESULT(ugrid_count_pairs(&g, radius, &pairs), UGRID_OK);
    check_total(2 * pairs, want);
    CHECK_RESULT(ugrid_count_neighbors(&g, radius, 0, counts), UGRID_OK);
    for (i = 0; i < n; i++) sum += counts[i];
    CHECK(sum == 2 * pairs);
    offsets = NEW(int64_t, n + 1);
    CHECK_RESULT(ugrid_neighbors(&g, radius, UGRID_HALF | UGRID_PLACES, offsets, NULL, 0, &needed), UGRID_BUFFER_TOO_SMALL);
    CHECK(needed == pairs);
    free(offsets);
    free(counts);
    ugrid_free(&g);
}

/* The first was counted by comparing all 5 * 10^9 pairs in a program of its own; the others come from shared/targets.md. */
#define TOTAL_UNIFORM_100K 2866956
#define TOTAL_UNIFORM_1M   29352150
#define TOTAL_DAM_1M       (29997354 + 6)   /* that text counts d < r; three pairs lie exactly at r, and we count d <= r */

static void test_uniform_100k(void **state)
{
    int32_t const n = 100000;
    float *p = NEW(float, 3 * n);
    real *pos;
    int method, walk;
    (void)state;
    wl_uniform(n, 7, p);
    pos = reals_of(p, 3 * (size_t)n);
    for (method = UGRID_COUNT; method <= UGRID_LIST_PACKED; method++)
        for (walk = UGRID_CELLS; walk <= UGRID_HYBRID; walk++) {
            if ((walk == UGRID_STRIPS || walk == UGRID_HYBRID) && method > UGRID_SORT) continue;
            if (share() > 2 && walk != UGRID_CELLS) continue;
            if (share() > 4 && (method + lot()) % 3) continue;
            check_workload(pos, n, (real)wl_radius(n, 30), (ugrid_method)method, (ugrid_walk)walk, TOTAL_UNIFORM_100K);
        }
    free(pos);
    free(p);
}

static void test_million(void **state)
{
    int32_t const n = 1000000;
    float *p = NEW(float, 3 * n);
    real *pos;
    (void)state;
    if (share() > 2) {
        free(p);
        skip();
    }
    wl_uniform(n, 1, p);
    pos = reals_of(p, 3 * (size_t)n);
    check_workload(pos, n, (real)wl_radius(n, 30), UGRID_COUNT, UGRID_WALK_AUTO, TOTAL_UNIFORM_1M);
    free(pos);
    CHECK(wl_sort_morton(n, p, NULL));
    pos = reals_of(p, 3 * (size_t)n);
    check_workload(pos, n, (real)wl_radius(n, 30), UGRID_SORT, UGRID_HYBRID, TOTAL_UNIFORM_1M);
    free(pos);
    wl_dam(n, 3, p);
    pos = reals_of(p, 3 * (size_t)n);
    check_workload(pos, n, (real)0.005577566f, UGRID_COUNT, UGRID_WALK_AUTO, TOTAL_DAM_1M);
    free(pos);
    free(p);
}

/* The generators themselves: order by Morton codes, motion within bounds, two sizes in their cube. */
static void test_workloads(void **state)
{
    int32_t const n = 5000;
    float *p = NEW(float, 3 * n), *q = NEW(float, 3 * n), *both = NEW(float, 3 * WL_BOTH), *radius = NEW(float, WL_BOTH), most = 0;
    int32_t *was = NEW(int32_t, n), i, big = 0;
    uint32_t x, y, z;
    (void)state;
    for (i = 0; i < 1000; i++) {
        float at[3];
        x = (uint32_t)(i * 7 % 1024), y = (uint32_t)(i * 131 % 1024), z = (uint32_t)(i * 31 % 1024);
        at[0] = ((float)x + 0.5f) / 1024;
        at[1] = ((float)y + 0.5f) / 1024;
        at[2] = ((float)z + 0.5f) / 1024;
        CHECK(wl_morton(at) == (uint32_t)ugrid_i_morton(3, (int32_t)x, (int32_t)y, (int32_t)z));
    }
    wl_uniform(n, 3, p);
    memcpy(q, p, sizeof *p * 3 * (size_t)n);
    CHECK(wl_sort_morton(n, q, was));
    for (i = 0; i < n; i++) {
        CHECK(memcmp(q + 3 * i, p + 3 * was[i], 3 * sizeof *p) == 0);
        if (i) CHECK(wl_morton(q + 3 * i) > wl_morton(q + 3 * i - 3) || (wl_morton(q + 3 * i) == wl_morton(q + 3 * i - 3) && was[i] > was[i - 1]));
    }
    memcpy(p, q, sizeof *p * 3 * (size_t)n);
    wl_move(n, q, 0.01f, 9);
    for (i = 0; i < 3 * n; i++) {
        float const moved = fabsf(p[i] - q[i]);
        CHECK(moved <= 0.0101f && q[i] >= 0 && q[i] < 1);
        if (moved > most) most = moved;
    }
    CHECK(most > 0.009f);
    wl_bidisperse(4, both, radius);
    for (i = 0; i < WL_BOTH; i++) {
        big += radius[i] > 0.005f;
        CHECK(both[3 * i] >= 0 && both[3 * i] <= WL_EDGE && both[3 * i + 2] >= 0 && both[3 * i + 2] <= WL_EDGE);
    }
    CHECK(big == WL_BIG);
    free(p);
    free(q);
    free(both);
    free(radius);
    free(was);
}

static int set_up_case(void **state)
{
    current_scene = NULL;
    current_config = NULL;
    return set_up(state);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup(name, set_up_case)

static int tear_down(void **state)
{
    (void)state;
    arrfree(met);
    arrfree(agreed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_version),
        TEST(test_texts),
        TEST(test_defaults),
        TEST(test_choose),
        TEST(test_fit),
        TEST(test_fit_ends),
        TEST(test_fit_needle),
        TEST(test_fit_flat),
        TEST(test_bad_descs),
        TEST(test_refusals_are_forgotten),
        TEST(test_bad_calls),
        TEST(test_room_for_one),
        TEST(test_not_built),
        TEST(test_point_not_finite),
        TEST(test_distance_overflows),
        TEST(test_box_too_wide),
        TEST(test_walk_rules),
        TEST(test_not_finite),
        TEST(test_cell_full),
        TEST(test_too_many_cells),
        TEST(test_too_many_entries),
        TEST(test_near_point),
        TEST(test_walk_order),
        TEST(test_spans),
        TEST(test_rim),
        TEST(test_huge_radius),
        TEST(test_cell_numbers),
        TEST(test_cells_of_borders),
        TEST(test_same_cells),
        TEST(test_sort_sizes),
        TEST(test_row_order),
        TEST(test_permutations),
        TEST(test_optional_arrays),
        TEST(test_cell_sums),
        TEST(test_stride),
        TEST(test_flat_desc),
        TEST(test_extreme_positions),
        TEST(test_pair_outside),
        TEST(test_periods_outside),
        TEST(test_out_of_memory),
        TEST(test_growth),
        TEST(test_growth_short_of_memory),
        TEST(test_change_of_allocator),
        TEST(test_reserve),
        TEST(test_reserve_for_automatic_method),
        TEST(test_validate_finds_damage),
        TEST(test_two_sizes),
        TEST(test_cells_per_axis),
        TEST(test_crowds),
        TEST(test_random_operations),
        TEST(test_workloads),
        TEST(test_uniform_100k),
        TEST(test_million),
        TEST(test_product_2d),
        TEST(test_product_split),
        TEST(test_product_3d),
    };
    if (getenv("UGRID_TEST_ONLY")) cmocka_set_test_filter(getenv("UGRID_TEST_ONLY"));
    return cmocka_run_group_tests_name("ugrid", tests, NULL, tear_down);
}
