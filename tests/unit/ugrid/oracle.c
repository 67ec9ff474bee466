/* oracle.c - a part of test_ugrid.c: the pairs of a set of points by brute force, in double, and
   the inputs that the tests run on: uniform, clustered, on lattices, on borders of cells,
   outside the box.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { OUTSIDE, RIM, WITHIN };

/* Bounds: bit a set = axis a is periodic; or no box at all. */
enum { UNBOUNDED = 8, CROWDED = 9 /* unbounded, all cells in 4 buckets */, ALL_BOUNDS = 10 };

enum { RADII = 4, QUERIES = 8 };

/* Points in a box, and which are neighbours, per radius. */
typedef struct scene {
    const char *input;
    int dim, bounds, exact;     /* exact: no operation on these numbers rounds */
    int cells[3];
    real min[3], max[3], cell;
    int32_t n;
    real *pos;                  /* stb_ds: n * dim */
    /* no point is outside the box, nor on the upper border of a periodic axis */
    int inside;
    int radii;
    real radius[RADII];
    uint8_t *truth[RADII];      /* n * n */
    int32_t m;                  /* query points: the last one is NaN */
    real query[3 * QUERIES];
    uint8_t *truth_at[RADII];   /* m * n */
} scene;

static int periodic_axis(const scene *s, int a)
{
    return s->bounds < 8 && a < s->dim && (s->bounds >> a & 1);
}

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

/* Difference along one axis as the header documents it: b - a, and one box less or more where that
   is nearer. */
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
            s->truth[k][i * s->n + j] =
                (uint8_t)truth_of(s, s->pos + i * s->dim, s->pos + j * s->dim, s->radius[k]);
        for (i = 0; i < s->m; i++) for (j = 0; j < s->n; j++)
            s->truth_at[k][i * s->n + j] =
                (uint8_t)truth_of(s, s->query + i * s->dim, s->pos + j * s->dim, s->radius[k]);
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
   ---------------------------------------------------------------------------------------------- */

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

/* Three dense clouds: one in the middle, one at a corner of the box (its points wrap or lie
   outside), one anywhere. */
static void fill_clustered(scene *s, int32_t n)
{
    while (s->n < n) {
        int const cloud = s->n % 3;
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            real const center = cloud == 0 ? (s->min[a] + s->max[a]) / 2 : cloud == 1 ? s->min[a] :
                s->min[a] + edge(s, a) * (real)0.81;
            p[a] = center + s->cell * between((real)-0.2, (real)0.2);
        }
        add_point(s, p);
    }
}

/* Multiples of half a cell, from the lower to the upper border of the box: many distances are
   exactly the radius. */
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
            real const border = k == s->cells[a] ? s->max[a] :
                s->min[a] + edge(s, a) * (real)k / (real)s->cells[a];
            p[a] = beside(border, roll(3) - 1);
        }
        add_point(s, p);
    }
}

/* A few big ones, far apart, and many small ones that touch them (1:10; see test_two_sizes for the
   radii). */
static void fill_two_sizes(scene *s, int32_t n)
{
    while (s->n < n) {
        real p[3];
        int a;
        for (a = 0; a < 3; a++) {
            if (s->n < 3) p[a] = s->min[a] + edge(s, a) * (real)(0.2 + 0.3 * s->n);
            else
                p[a] = s->pos[(s->n % 3) * s->dim + (a < s->dim ? a : 0)] +
                    s->cell * between((real)-0.6, (real)0.6);
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
    {"uniform", fill_uniform}, {"clustered", fill_clustered}, {"lattice", fill_lattice},
    {"all equal", fill_equal}, {"cell borders", fill_borders}, {"two sizes", fill_two_sizes},
    {"empty", fill_empty}, {"single", fill_single}, {"outside", fill_outside},
    {"faces of the box", fill_faces},
};

/* Cells per axis. `plain`: all numbers are short binary fractions; else the cell does not divide
   the box and nothing is round. */
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

/* Half a cell, one cell, several cells, and more than half of the longest side of the box (of a box
   of many cells, several cells are more than half of two sides already; walks through all of its
   cells are what takes the time of these tests). */
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
