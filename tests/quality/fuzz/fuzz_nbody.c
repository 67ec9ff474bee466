/* fuzz_nbody.c - any bytes become a desc, bodies and calls on nbody.h; fields are compared with
   direct sums in double.
   SPDX-License-Identifier: MIT OR Unlicense
   See README.md here. */

#include "fuzz.h"
#define NBODY_I_MANY_POINTS 4 /* a call has up to 7: these read nodes, fewer do not */
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_SETS
#define NBODY_WITH_PERIODIC
#define NBODY_WITH_VORTEX
#define NBODY_WITH_FUNCTION
#define NBODY_IMPLEMENTATION
#include "nbody.h"

/* What the Ewald sums of the tests need. */
#define ORACLE_PI 3.14159265358979323846
typedef struct oracle_body { double x, y, m; } oracle_body;
typedef struct oracle_field { double x, y, p, share, p_share; } oracle_field;
#include "../../unit/nbody/ewald.h"

enum { OPS = 8, HEAP_MOST = 1 << 24 };

typedef struct state {
    fz *f;
    fz_heap heap[2];
    int which;
    nbody sim;
    nbody_desc given;
    fz_points points;
    real *mass;             /* mass_step apart; NULL: all 1 */
    size_t mass_step;
    int built;
} state;

/* Laws of a caller: f(d) and its integral, finite everywhere. *user: the power. */
static double pull_at(double d, void *user) { return pow(1 + d, -*(const double *)user); }

static double pull_integral(double d, void *user)
{
    return *(const double *)user > 1 ? -1 / (1 + d) : log1p(d);
}

static void give_function(nbody_desc *d, int kind)
{
    static double power[2] = {1, 2};
    d->law = NBODY_FUNCTION;
    d->function.user = &power[kind & 1];
    d->function.force = pull_at;
    if (kind & 2) d->function.potential = pull_integral;
}

static nbody_desc any_desc(state *s)
{
    fz *f = s->f;
    nbody_desc d;
    int const kind = fz_u8(f), more = fz_u8(f), c = fz_u8(f);
    memset(&d, 0, sizeof d);
    d.method = (nbody_method)(kind & 3);
    if (kind >= 252) d.method = (nbody_method)fz_choice(f, 4);
    d.law = (nbody_law)(kind >> 2 & 1);
    if (more == 255) d.law = (nbody_law)fz_choice(f, 3);
    if (more == 249 || more == 248) d.law = NBODY_VORTEX;
    if (more == 248 || more == 247) d.core = NBODY_GAUSSIAN;
    if (more == 246) d.core = (nbody_core)fz_choice(f, 2);
    if (kind & 8) d.levels = more % 11 + (more >= 240 ? fz_u8(f) % 8 : 0);
    if (more == 254) d.levels = fz_choice(f, NBODY_MAX_LEVELS + 1);
    if (kind & 16) d.leaf = 1 + more % 40;
    if (more == 253) d.leaf = -1;
    if (kind & 32) d.order = 1 + c % (d.method == NBODY_VIRTUAL_PARTICLES ? 2 : NBODY_MAX_ORDER);
    if (kind & 64)
        d.sources =
            (nbody_sources)(c >> 4 & 1                                      ? NBODY_MASS_CENTRES
                            : d.method == NBODY_FORCE_NODES && d.order != 1 ? NBODY_CHEBYSHEV
                                                                            : NBODY_SOURCES_AUTO);
    if (c >= 250) d.sources = (nbody_sources)fz_choice(f, 3), d.order = fz_choice(f, 14);
    d.subcells = kind & 128 ? 2 << more % 3 : 0;
    if (more == 252) d.subcells = fz_choice(f, 10);
    if (c & 1) d.gravity = fz_real(f);
    if (c & 2) d.softening = fz_length(f) / (c & 4 ? 16 : 1);
    if ((c & 0x18) == 0x18) {
        d.min[0] = fz_real(f);
        d.min[1] = fz_real(f);
        d.size = fz_length(f);
    }
    if (c & 32) d.stage = (nbody_stage)fz_choice(f, 4);
    if (more == 251) d.acc_stride = (size_t)fz_u8(f);
    if (more == 250) d.max_cells = fz_choice(f, 100);
    if (fz_u8(f) >= 250) s->which = (s->which + 1) % 3;
    if (s->which < 2) {
        d.allocator.alloc = fz_alloc;
        d.allocator.free = fz_free;
        d.allocator.user = &s->heap[s->which];
    }
    if (more >= 228 && more <= 236) {
        d.periodic = 1;
        if (more > 228 && !(d.size > 0)) d.size = more > 231 ? 1 : fz_length(f);
        if (more > 234) d.softening = 0;
        if (d.order > 6) d.order = 6; /* time */
    }
    if (more == 243) d.periodic = fz_choice(f, 2);
    if (more >= 237 && more <= 242) give_function(&d, more);
    if (more == 249) d.allocator.free = d.allocator.free ? NULL : fz_free;
    return d;
}

static int enum_bad(int value, int last) { return value < 0 || value > last; }

/* The method and the order that a desc comes to, where the header says so. */
static int is_tree(const nbody_desc *d)
{
    return d->method == NBODY_VIRTUAL_PARTICLES || d->method == NBODY_FORCE_NODES;
}

static fz_codes codes_of_desc(const nbody_desc *d)
{
    fz_codes c = {0, 0};
    int const nodes = d->method == NBODY_FORCE_NODES;
    int const order_bad = d->order < 0 || (nodes && d->order > NBODY_MAX_ORDER) ||
                          (d->method == NBODY_VIRTUAL_PARTICLES && d->order > 2);
    fz_must(&c,
            enum_bad((int)d->method, 3) || enum_bad((int)d->law, 3) ||
                enum_bad((int)d->core, 1) ||
                (d->core == NBODY_GAUSSIAN && d->law == NBODY_INVERSE_SQUARE) ||
                enum_bad((int)d->sources, 2) || enum_bad((int)d->stage, 3) || order_bad ||
                (d->method == NBODY_VIRTUAL_PARTICLES && d->sources == NBODY_CHEBYSHEV) ||
                (nodes && d->order == 1 && d->sources == NBODY_CHEBYSHEV) ||
                (d->subcells != 0 && d->subcells != 2 && d->subcells != 4 && d->subcells != 8),
            NBODY_BAD_OPTION);
    fz_must(&c, d->law == NBODY_FUNCTION && !d->function.force, NBODY_BAD_ARGUMENT);
    fz_must(&c,
            d->law == NBODY_FUNCTION &&
                (d->core || d->periodic || (d->method == NBODY_VIRTUAL_PARTICLES && d->order == 2)),
            NBODY_BAD_OPTION);
    fz_must(&c,
            d->periodic < 0 || d->periodic > 1 ||
                (d->periodic && (d->method == NBODY_VIRTUAL_PARTICLES ||
                                 (nodes && (d->order == 1 || d->sources == NBODY_MASS_CENTRES)))),
            NBODY_BAD_OPTION);
    if (d->periodic) {
        fz_must(&c, (d->levels > 0 && d->levels < 3) || d->levels > NBODY_KEY_LEVELS,
                NBODY_BAD_LEVELS);
        fz_must(&c, !(d->size > 0), NBODY_BAD_SQUARE);
        fz_may(&c, fabs((double)d->min[0]) + fabs((double)d->min[1]) > 1e6 * (double)d->size ||
                       (double)d->size > (double)FZ_MAX / 4,
               NBODY_BAD_SQUARE);
        fz_must(&c, (double)d->softening > 0.26 * (double)d->size, NBODY_BAD_NUMBER);
        fz_may(&c, (double)d->softening > (double)d->size / 32, NBODY_BAD_NUMBER);
    }
    /* it may turn out to be a tree */
    fz_may(&c, d->method == NBODY_AUTO && (d->order || d->sources), NBODY_BAD_OPTION);
    fz_must(&c, d->levels < 0 || d->levels > NBODY_MAX_LEVELS || d->leaf < 0 || d->max_cells < 0,
            NBODY_BAD_LEVELS);
    fz_must(&c, !fz_finite(d->gravity) || !fz_finite(d->softening) || d->softening < 0,
            NBODY_BAD_NUMBER);
    fz_must(&c,
            !fz_finite(d->min[0]) || !fz_finite(d->min[1]) || !fz_finite(d->size) || d->size < 0,
            NBODY_BAD_SQUARE);
    fz_must(&c,
            d->mass_stride % sizeof(real) || d->acc_stride % sizeof(real) ||
                (d->acc_stride != 0 && d->acc_stride < 2 * sizeof(real)),
            NBODY_BAD_ARGUMENT);
    fz_must(&c, !d->allocator.alloc != !d->allocator.free, NBODY_BAD_ALLOCATOR);
    return c;
}

static real mass_of(const state *s, int32_t i)
{
    return s->mass ? s->mass[(size_t)i * s->mass_step] : 1;
}

static void check_empty(state *s)
{
    real p[2] = {0, 0}, acc[2];
    nbody_counts counts;
    FZ_CHECK(s->sim.n == 0 && s->sim.frame == NULL);
    FZ_CHECK(nbody_fields_at(&s->sim, p, 0, 1, acc, NULL, NULL) == NBODY_NOT_BUILT);
    FZ_CHECK(nbody_count(&s->sim, &counts) == NBODY_NOT_BUILT);
    s->built = 0;
}

/* ------------------------------------------------------------------------------------------------
   The direct sum in double
   ---------------------------------------------------------------------------------------------- */

/* slack: an error of so much of share, beside the method's. */
typedef struct field { double x, y, p, share, p_share, mass, slack; int delicate; } field;

/* The scale of the scene: the largest of coordinates, square and softening. */
static double scale_of(const state *s)
{
    double scale = fmax((double)s->given.softening, s->sim.frame->size);
    int32_t i;
    for (i = 0; i < s->points.n; i++)
        scale = fmax(scale, fmax(fabs((double)fz_point(&s->points, i)[0]),
                                 fabs((double)fz_point(&s->points, i)[1])));
    return scale;
}

/* delicate: a pair so near that its place is rounded, or softened by the header. */
static field direct_sum(const state *s, const real *at, int32_t self, double scale)
{
    double const eps = (double)s->given.softening;
    double g = s->given.gravity == 0 ? 1 : (double)s->given.gravity;
    int const inverse = s->given.law != NBODY_INVERSE_SQUARE, core = s->given.core && eps > 0,
              own = s->given.law == NBODY_FUNCTION;
    field f = {0, 0, 0, 0, 0, 0, 0, 0};
    int32_t j;
    for (j = 0; j < s->points.n; j++) {
        double const dx = (double)fz_point(&s->points, j)[0] - (double)at[0],
                     dy = (double)fz_point(&s->points, j)[1] - (double)at[1];
        double const m = (double)mass_of(s, j), bare = hypot(dx, dy),
                     r = core ? bare : hypot(bare, eps);
        if (j == self) continue;
        if (bare == 0 && !(eps > 0)) continue;
        if (r < 1e-8 * scale) f.delicate = 1;
        if (r > 0) {
            double const pull = own ? m * pull_at(r, s->given.function.user) / r
                                    : (inverse ? m / r / r : m / r / r / r) *
                                          (core ? -expm1(-(r / eps) * (r / eps)) : 1);
            double const phi = own       ? pull_integral(r, s->given.function.user)
                               : inverse ? log(r)
                                         : -1 / r;
            f.x += pull * dx;
            f.y += pull * dy;
            f.share += fabs(pull * bare);
            f.p += m * phi;
            f.p_share += fabs(m) * (fabs(phi) + (inverse ? 1 : 0));
        }
        f.mass += fabs(m);
    }
    if (s->given.law == NBODY_VORTEX) {
        double const x = f.x;
        g /= 2 * 3.14159265358979323846;
        f.x = f.y;
        f.y = -x;
        f.p = -f.p;
    }
    f.x *= g;
    f.y *= g;
    f.p *= g;
    f.share *= fabs(g);
    f.p_share *= fabs(g);
    f.mass *= fabs(g);
    return f;
}

/* Ewald sums where they are exact: these need no waves beyond the 50th. Positions within some sides
   of the square, and not nearer to each other than their rounding allows. */
static field periodic_sum(const state *s, const real *at, int32_t self)
{
    static ewald sums;
    static oracle_body body[64];
    const nbody_desc *d = &s->given;
    double const size = (double)d->size, eps = (double)d->softening / size;
    double closest = 1, far = 1;
    int32_t j;
    int a;
    nbody_desc given = *d;
    field f = {0, 0, 0, 0, 0, 0, 0, 1};
    oracle_field sum;
    if (s->points.n > 64 || size < 1e-3 || size > 1e3) return f;
    if (eps > 0 && eps < (d->core ? 0.036 : 0.12)) return f;
    for (j = -1; j < s->points.n; j++) {
        const real *p = j < 0 ? at : fz_point(&s->points, j);
        double square = eps * eps;
        for (a = 0; a < 2; a++) {
            double gap = ((double)p[a] - (double)at[a]) / size;
            far = fmax(far, fmax(fabs((double)p[a]), fabs((double)d->min[a])) / size);
            gap -= floor(gap + 0.5);
            square += gap * gap;
        }
        if (j >= 0 && j != self) closest = fmin(closest, sqrt(square));
        if (j < 0) continue;
        body[j].x = (double)p[0];
        body[j].y = (double)p[1];
        body[j].m = (double)mass_of(s, j);
        f.mass += fabs(body[j].m);
    }
    if (far > 30 || closest < 1e4 * FZ_EPSILON * far) return f;
    given.gravity = d->gravity == 0 ? 1 : d->gravity;
    f.mass *= fabs((double)given.gravity);
    ewald_make(&sums, &given, body, s->points.n);
    sum = ewald_at(&sums, &given, (double)at[0], (double)at[1], self);
    f.x = sum.x;
    f.y = sum.y;
    f.p = sum.p;
    f.share = sum.share + 4 * f.mass / size / (d->law == NBODY_INVERSE_SQUARE ? size : 1);
    f.p_share = sum.p_share + 4 * f.mass * (1 + fabs(log(size)));
    f.slack = 16 * FZ_EPSILON * far / closest; /* positions in the square are rounded */
    f.delicate = 0;
    return f;
}

static field direct(const state *s, const real *at, int32_t self, double scale)
{
    return s->given.periodic ? periodic_sum(s, at, self) : direct_sum(s, at, self, scale);
}

/* What rounding does: to sums, and to the places of sources, which are as exact as their
   coordinates, against the finest cells. */
static double rounding_of(const state *s)
{
    const nbody_frame *frame = s->sim.frame;
    double const far = (fmax(fabs(frame->min[0]), fabs(frame->min[1])) + frame->size) / frame->size;
    int const levels = !s->sim.cell ? 1 : frame->levels < 17 ? frame->levels : 17;
    if (frame->deep && FZ_IS_FLOAT) return 5e-5 + ldexp(far, levels - 26);
    return FZ_IS_FLOAT ? 6e-6 + ldexp(s->sim.cell ? far : 1, levels - 26) : 1e-11;
}

/* The largest error of any body, as a share of the sum of all |terms|: those of
   tests/unit/nbody/test_nbody.c, which were found by trying, and three times as much for what was
   not tried. */
static double share_of(const state *s)
{
    static const double nodes[13] = {0,    2.5e-2, 3e-1, 6e-2, 1.1e-2, 2.2e-3, 5e-4,
                                     1e-4, 2.6e-5, 6e-6, 1e-6, 4e-7,   1e-7};
    const nbody_desc *d = &s->sim.desc;
    double const rounding = rounding_of(s);
    double share = 0;
    if (!s->sim.cell) return rounding;
    if (d->method == NBODY_FORCE_NODES) share += nodes[d->order];
    if (d->sources == NBODY_MASS_CENTRES)
        share += d->method == NBODY_VIRTUAL_PARTICLES && d->order == 2
                     ? (d->subcells == 8   ? 4e-5
                        : d->subcells == 4 ? 8e-4
                                           : 6e-3)
                     : (d->subcells == 8   ? 1e-3
                        : d->subcells == 4 ? 4e-3
                                           : 3e-2);
    return 3 * share + rounding;
}

/* Masses so unequal that the small ones are none beside the large ones. */
static int masses_far_apart(const state *s)
{
    double least = HUGE_VAL, most = 0;
    int32_t i;
    for (i = 0; i < s->points.n; i++) {
        double const m = fabs((double)mass_of(s, i));
        if (m > 0) least = fmin(least, m);
        most = fmax(most, m);
    }
    return most > 1e25 * least;
}

static void check_field(const state *s, const field *want, const real *acc, const real *potential,
                        double share, double scale)
{
    double const most = (double)FZ_MAX / 8, tiny = (double)FZ_MIN;
    share += want->slack;
    if (acc) {
        FZ_CHECK(acc[0] == acc[0] && acc[1] == acc[1]);
        if (!want->delicate && want->share < most) {
            double const error = hypot((double)acc[0] - want->x, (double)acc[1] - want->y);
            FZ_CHECK(fz_finite(acc[0]) && fz_finite(acc[1]));
            if (!(error <= share * want->share + tiny))
                FZ_TRACE("  got %.9g %.9g want %.9g %.9g, %g of the share %g", (double)acc[0],
                         (double)acc[1], want->x, want->y, error / want->share, want->share);
            FZ_CHECK(error <= share * want->share + tiny);
        }
    }
    if (potential) {
        FZ_CHECK(potential[0] == potential[0]);
        /* of a Gaussian core: tests/unit/nbody/test_vortex.c */
        if (!want->delicate && want->p_share < most && want->mass < most && !s->given.core) {
            double const logs = s->given.law != NBODY_INVERSE_SQUARE
                                    ? 64 * FZ_EPSILON * want->mass * (fabs(log(scale)) + 45)
                                    : 0;
            FZ_CHECK(fz_finite(potential[0]));
            if (!(fabs((double)potential[0] - want->p) <= share * want->p_share + logs + tiny))
                FZ_TRACE("  potential got %.9g want %.9g share %g", (double)potential[0], want->p,
                         want->p_share);
            FZ_CHECK(fabs((double)potential[0] - want->p) <= share * want->p_share + logs + tiny);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   Calls
   ---------------------------------------------------------------------------------------------- */

static void any_masses(state *s, nbody_desc *d, int32_t n)
{
    int const c = fz_u8(s->f);
    int32_t i;
    free(s->mass);
    s->mass = NULL;
    s->mass_step = 1 + (c >> 6 & 1);
    if (c % 4 == 0) return;
    d->mass_stride = s->mass_step > 1 ? s->mass_step * sizeof(real) : 0;
    if (c == 251) d->mass_stride = 3;
    s->mass = FZ_NEW(real, (size_t)n * s->mass_step);
    fz_seed(s->f);
    for (i = 0; i < n; i++) {
        real m = c % 4 == 1   ? (real)fz_unit(s->f)
                 : c % 4 == 2 ? (real)fz_roll(s->f, 3)
                              : (real)pow(10, fz_unit(s->f) * 8 - 4);
        if (c & 32 && fz_roll(s->f, 2)) m = -m;
        s->mass[(size_t)i * s->mass_step] = m;
    }
    if (c >= 245 && n > 0) s->mass[(size_t)(fz_u16(s->f) % n) * s->mass_step] = fz_special(s->f);
}

/* Some times, half of the points in a clump around the origin: a deep tree. */
static void squeeze(state *s, int by)
{
    int32_t i;
    if (by < 200 || by >= 224) return;
    for (i = 1; i < s->points.n; i += 2) {
        real *p = s->points.x + (size_t)i * (size_t)s->points.step;
        p[0] = (real)ldexp((double)p[0], 200 - by - 10);
        p[1] = (real)ldexp((double)p[1], 200 - by - 10);
    }
}

static void op_build(state *s)
{
    nbody_desc d = any_desc(s);
    int const what = fz_u8(s->f), lie = fz_u8(s->f), with_acc = what % 4 != 3,
              with_potential = (what >> 2) % 2;
    int32_t n = fz_count(s->f), i, first = -1, negative = -1;
    int any_sign, direct_method, apart;
    double scale, share, low[2] = {0, 0}, high[2] = {0, 0};
    fz_codes codes;
    nbody_result r;
    real *acc, *potential;
    size_t acc_step;
    /* time */
    if (n > 250 && is_tree(&d) &&
        ((d.leaf > 0 && d.leaf < 8) || d.levels > 6 || d.order == 1 || d.order > 5))
        n = 250;
    if (n > 40 && d.periodic && !is_tree(&d)) n = 40;
    if (n > 60 && d.levels > NBODY_KEY_LEVELS) n = 60; /* cells of one body, on each level */
    /* tables of order^4, on each level */
    if (d.order > 6 && d.levels >= 0 && d.levels <= NBODY_MAX_LEVELS)
        d.levels = 3 + (d.order <= 8 && d.levels > 3);
    fz_drop_points(&s->points);
    s->points = fz_points_of(s->f, n, 2);
    squeeze(s, lie);
    any_masses(s, &d, n);
    codes = codes_of_desc(&d);
    acc_step = d.acc_stride >= 2 * sizeof(real) && d.acc_stride % sizeof(real) == 0
                   ? d.acc_stride / sizeof(real)
                   : 2;
    acc = FZ_NEW(real, (size_t)n * acc_step);
    potential = FZ_NEW(real, n);
    for (i = 0; i < n && !(d.mass_stride % sizeof(real)); i++) {
        const real *p = fz_point(&s->points, i);
        int const bad = !fz_finite(p[0]) || !fz_finite(p[1]) || !fz_finite(mass_of(s, i));
        int a;
        if (bad && first < 0) first = i;
        if (mass_of(s, i) < 0 && negative < 0) negative = i;
        for (a = 0; a < 2 && !bad; a++) {
            low[a] = i == 0 || (double)p[a] < low[a] ? (double)p[a] : low[a];
            high[a] = i == 0 || (double)p[a] > high[a] ? (double)p[a] : high[a];
        }
    }
    direct_method = d.method == NBODY_DIRECT || (d.method == NBODY_AUTO && n <= 32);
    any_sign =
        d.method == NBODY_DIRECT ||
        (d.method == NBODY_FORCE_NODES &&
         (d.sources == NBODY_CHEBYSHEV || (d.sources == NBODY_SOURCES_AUTO && d.order != 1)));
    fz_must(&codes, s->points.stride_bad || lie >= 254 || (lie == 253 && n > 0),
            NBODY_BAD_ARGUMENT);
    fz_must(&codes, first >= 0, NBODY_NOT_FINITE);
    fz_must(&codes,
            d.law == NBODY_FUNCTION && !d.function.potential && with_potential && what % 4 >= 2,
            NBODY_BAD_ARGUMENT);
    if (d.method == NBODY_AUTO) fz_may(&codes, negative >= 0 && !direct_method, NBODY_BAD_MASS);
    else fz_must(&codes, negative >= 0 && !any_sign, NBODY_BAD_MASS);
    fz_may(&codes,
           high[0] - low[0] > (double)FZ_MAX / 4 || high[1] - low[1] > (double)FZ_MAX / 4 ||
               (double)d.size > (double)FZ_MAX / 4,
           NBODY_TOO_LARGE);
    fz_may(&codes,
           (double)d.size + fmax(fabs((double)d.min[0]), fabs((double)d.min[1])) >
               (double)FZ_MAX / 4,
           NBODY_TOO_LARGE);
    /* doubles have no wider type behind them: squares overflow, and 1e-300 has no inverse */
    fz_may(&codes, !FZ_IS_FLOAT, NBODY_TOO_LARGE);
    fz_must(&codes,
            nbody_bytes(&s->sim) > 0 && (s->sim.desc.allocator.alloc != d.allocator.alloc ||
                                         s->sim.desc.allocator.free != d.allocator.free ||
                                         s->sim.desc.allocator.user != d.allocator.user),
            NBODY_BAD_ALLOCATOR);
    if (s->which < 2) {
        fz_plan_failure(s->f, &s->heap[s->which]);
        s->heap[s->which].crooked = lie == 251;
        fz_may(&codes, lie == 251, NBODY_BAD_ALLOCATOR);
    }
    {
        const real *pos = lie == 253 ? NULL : s->points.x;
        int32_t const told = lie >= 254 ? -lie : n;
        if (what % 4 == 0) r = nbody_build(&s->sim, &d, pos, s->points.stride, s->mass, told);
        else if (what % 4 == 1)
            r = nbody_accelerations(&s->sim, &d, pos, s->points.stride, s->mass, told, acc);
        else
            r = nbody_fields(&s->sim, &d, pos, s->points.stride, s->mass, told,
                             with_acc ? acc : NULL, with_potential ? potential : NULL);
    }
    FZ_TRACE("build %d n %d method %d law %d levels %d leaf %d order %d sources %d subcells %d "
             "gravity %g softening %g square %g %g %g: %s",
             what % 4, n, (int)d.method, (int)d.law, d.levels, d.leaf, d.order, (int)d.sources,
             d.subcells, (double)d.gravity, (double)d.softening, (double)d.min[0], (double)d.min[1],
             (double)d.size, nbody_result_text(r));
    if (s->which < 2) {
        s->heap[s->which].crooked = 0;
        fz_may(&codes, s->heap[s->which].failed, NBODY_OUT_OF_MEMORY);
        s->heap[s->which].fail_at = 0;
    }
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nbody_result_text(r));
    if (r == NBODY_NOT_FINITE && negative < 0) FZ_CHECK(s->sim.bad_id == first);
    if (r == NBODY_BAD_MASS && first < 0) FZ_CHECK(s->sim.bad_id == negative);
    s->given = d;
    if (r != NBODY_OK) {
        check_empty(s);
    } else {
        if (s->which < 2) s->heap[s->which].failed = 0;
        r = nbody_validate(&s->sim);
        FZ_CHECK_CODE(r == NBODY_OK ||
                          (r == NBODY_OUT_OF_MEMORY && s->which < 2 && s->heap[s->which].failed),
                      nbody_result_text(r));
        FZ_CHECK(s->sim.n == n && s->sim.bad_id == -1 && s->sim.frame);
        s->built = 1;
        scale = scale_of(s);
        share = share_of(s);
        apart = masses_far_apart(s);
        for (i = 0; i < n && what % 4 != 0 && (with_acc || with_potential); i++) {
            field want;
            if ((n > 300 && i % 61 != 0) || (d.periodic && i > 1)) continue;
            want = direct(s, fz_point(&s->points, i), i, scale);
            if (apart) want.delicate = 1;
            check_field(s, &want, with_acc || what % 4 == 1 ? acc + (size_t)i * acc_step : NULL,
                        with_potential && what % 4 >= 2 ? potential + i : NULL, share, scale);
        }
        if (n > 0 && what % 4 == 1 && n < 400) {
            nbody_error error;
            FZ_CHECK(nbody_estimate(&s->sim, acc, fz_u8(s->f), (uint32_t)fz_u8(s->f), &error) ==
                     NBODY_OK);
            FZ_CHECK(error.samples >= 0 && error.samples <= n &&
                     !(error.mean_share > error.share * 1.000001));
        }
    }
    free(potential);
    free(acc);
}

static int lacks_potential(const state *s)
{
    return s->built && s->given.law == NBODY_FUNCTION && !s->given.function.potential;
}

static void op_fields_at(state *s)
{
    int32_t const m = fz_below(s->f, 8);
    fz_points q = fz_points_of(s->f, m, 2);
    int const outputs = fz_below(s->f, 4);
    real *acc = FZ_NEW(real, 2 * m), *potential = FZ_NEW(real, m);
    int32_t bad = -2, first = fz_first_not_finite(&q), i;
    fz_codes codes = {0, 0};
    nbody_result r;
    fz_must(&codes, q.stride_bad, NBODY_BAD_ARGUMENT);
    fz_must(&codes, !s->built, NBODY_NOT_BUILT);
    fz_must(&codes, first >= 0, NBODY_NOT_FINITE);
    for (i = 0; i < m && s->built && s->points.n > 0 && outputs & 1; i++) /* a body's very place */
        if (fz_u8(s->f) % 4 == 0)
            memcpy(q.x + (size_t)i * (size_t)q.step,
                   fz_point(&s->points, fz_u8(s->f) % s->points.n), 2 * sizeof(real));
    first = fz_first_not_finite(&q);
    codes.must &= ~((uint64_t)1 << NBODY_NOT_FINITE);
    fz_must(&codes, first >= 0, NBODY_NOT_FINITE);
    fz_must(&codes, outputs & 2 && lacks_potential(s), NBODY_BAD_ARGUMENT);
    r = nbody_fields_at(&s->sim, q.x, q.stride, m, outputs & 1 ? acc : NULL,
                        outputs & 2 ? potential : NULL, &bad);
    fz_may(&codes, s->which < 2 && s->heap[s->which].failed, NBODY_OUT_OF_MEMORY);
    FZ_TRACE("fields at %d: %s", m, nbody_result_text(r));
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nbody_result_text(r));
    if (r == NBODY_NOT_FINITE) FZ_CHECK(bad == first);
    if (r == NBODY_OK) {
        double const scale = scale_of(s), share = 2 * share_of(s);
        int const apart = masses_far_apart(s);
        for (i = 0; i < m; i++) {
            const real *p = fz_point(&q, i);
            field want = direct(s, p, -1, scale);
            double const away = fmax(fabs((double)p[0]), fabs((double)p[1]));
            int const inside = (double)p[0] >= s->sim.frame->min[0] &&
                               (double)p[1] >= s->sim.frame->min[1] &&
                               (double)p[0] <= s->sim.frame->min[0] + s->sim.frame->size &&
                               (double)p[1] <= s->sim.frame->min[1] + s->sim.frame->size;
            if (apart || (!s->given.periodic && !inside &&
                          (away > 1e9 * scale || scale > 1e9 * away)))
                want.delicate = 1;
            check_field(s, &want, outputs & 1 ? acc + 2 * i : NULL,
                        outputs & 2 ? potential + i : NULL, share, fmax(scale, away));
        }
    }
    free(potential);
    free(acc);
    fz_drop_points(&q);
}

/* Sets of masses at the positions of the build: the last one is what it then holds. */
static void op_sets(state *s)
{
    int const outputs = fz_below(s->f, 4), sets = fz_below(s->f, 8) - 1, again = fz_u8(s->f) & 1;
    int32_t const n = s->built ? s->sim.n : 0, count = again ? 1 : sets;
    size_t const stride = s->built ? s->sim.desc.mass_stride : 0,
                 step = stride ? stride / sizeof(real) : 1,
                 gap = s->built ? s->sim.desc.acc_stride / sizeof(real) : 2,
                 all = (size_t)(count > 0 ? count : 0) * (size_t)n;
    real *mass = FZ_NEW(real, all * step), *acc = FZ_NEW(real, all * gap),
         *potential = FZ_NEW(real, all);
    fz_codes codes = {0, 0};
    int32_t i;
    size_t k;
    nbody_result r;
    for (k = 0; k < all; k++) mass[k * step] = mass_of(s, (int32_t)(k % (size_t)n)) + (real)(k / n);
    if (fz_u8(s->f) >= 250 && all > 0) mass[fz_u16(s->f) % all * step] = fz_special(s->f);
    for (k = 0; k < all; k++) fz_must(&codes, !fz_finite(mass[k * step]), NBODY_NOT_FINITE);
    for (k = 0; k < all; k++)
        fz_must(&codes, mass[k * step] < 0 && s->sim.desc.method != NBODY_DIRECT &&
                            s->sim.desc.sources != NBODY_CHEBYSHEV, NBODY_BAD_MASS);
    fz_must(&codes, count < 0 || (outputs & 2 && lacks_potential(s)), NBODY_BAD_ARGUMENT);
    fz_must(&codes, !s->built, NBODY_NOT_BUILT);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = again ? nbody_fields_again(&s->sim, mass, outputs & 1 ? acc : NULL,
                                   outputs & 2 ? potential : NULL)
              : nbody_fields_sets(&s->sim, sets, mass, outputs & 1 ? acc : NULL,
                                  outputs & 2 ? potential : NULL);
    FZ_TRACE("sets %d of %d: %s", count, n, nbody_result_text(r));
    if (s->which < 2)
        fz_may(&codes, s->heap[s->which].failed, NBODY_OUT_OF_MEMORY),
            s->heap[s->which].fail_at = 0;
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nbody_result_text(r));
    if (r == NBODY_OK && n > 0 && count > 0) {
        double const scale = scale_of(s), share = share_of(s);
        free(s->mass);
        s->mass = FZ_NEW(real, (size_t)n * step);
        s->mass_step = step;
        memcpy(s->mass, mass + (all - (size_t)n) * step, (size_t)n * step * sizeof(real));
        for (i = 0; i < n && outputs; i += n > 300 || s->given.periodic ? 61 : 1) {
            field want = direct(s, fz_point(&s->points, i), i, scale);
            size_t const at = all - (size_t)n + (size_t)i;
            if (masses_far_apart(s)) want.delicate = 1;
            check_field(s, &want, outputs & 1 ? acc + at * gap : NULL,
                        outputs & 2 ? potential + at : NULL, share, scale);
        }
    } else if (r != NBODY_OK && r != NBODY_BAD_ARGUMENT && s->built) check_empty(s);
    free(potential);
    free(acc);
    free(mass);
}

static void op_count(state *s)
{
    nbody_counts counts;
    nbody_result const r = nbody_count(&s->sim, &counts);
    int64_t const n = s->points.n;
    int64_t each = n; /* a body at least meets itself, but in a leaf of bodies at one point */
    int32_t c;
    FZ_CHECK(r == (s->built ? NBODY_OK : NBODY_NOT_BUILT));
    if (r != NBODY_OK) return;
    for (c = 0; c < counts.cells; c++)
        if (s->sim.cell[c].quarters == NBODY_I_CROWD) each -= s->sim.cell[c].count;
    FZ_CHECK(counts.cells >= 0 && counts.leaves >= 0 &&
             counts.leaves <= (counts.cells > 0 ? counts.cells : 0) &&
             counts.levels <= NBODY_MAX_LEVELS);
    FZ_CHECK(counts.near_terms >= each && counts.near_terms <= n * n && counts.far_terms >= 0 &&
             counts.table_terms >= 0);
}

static void op_step(state *s)
{
    nbody_desc d = any_desc(s);
    int32_t const n = fz_count(s->f) % 64;
    int const integrator = fz_choice(s->f, 2), dim_lie = fz_u8(s->f);
    real const dt = fz_real(s->f);
    fz_points p = fz_points_of(s->f, n, 2), v = fz_points_of(s->f, n, 2);
    real *pos = FZ_NEW(real, 2 * n), *vel = FZ_NEW(real, 2 * n), *acc = FZ_NEW(real, 2 * n),
         *was = FZ_NEW(real, 4 * n);
    nbody_bodies b;
    nbody_result r = NBODY_OK;
    nbody_energies energies;
    fz_codes codes = codes_of_desc(&d);
    int32_t i, finite = 1;
    int step;
    for (i = 0; i < n; i++) {
        memcpy(pos + 2 * i, fz_point(&p, i), 2 * sizeof(real));
        memcpy(vel + 2 * i, fz_point(&v, i), 2 * sizeof(real));
        finite &= fz_finite(pos[2 * i]) && fz_finite(pos[2 * i + 1]);
    }
    memcpy(was, pos, 2 * (size_t)n * sizeof(real));
    memcpy(was + 2 * n, vel, 2 * (size_t)n * sizeof(real));
    memset(&b, 0, sizeof b);
    b.pos = pos;
    b.vel = vel;
    b.acc = acc;
    b.n = dim_lie == 255 ? -1 : n;
    s->given = d;
    /* its strides are not looked at: tightly packed */
    codes.must &= ~((uint64_t)1 << NBODY_BAD_ARGUMENT);
    fz_may(&codes, d.acc_stride != 0, NBODY_BAD_ARGUMENT);
    fz_must(&codes, integrator < 0 || integrator > 1, NBODY_BAD_OPTION);
    fz_must(&codes, d.law == NBODY_VORTEX, NBODY_BAD_OPTION);
    fz_must(&codes, !fz_finite(dt), NBODY_BAD_NUMBER);
    fz_must(&codes, b.n < 0, NBODY_BAD_ARGUMENT);
    fz_must(&codes, !finite, NBODY_NOT_FINITE);
    fz_must(&codes,
            nbody_bytes(&s->sim) > 0 && (s->sim.desc.allocator.alloc != d.allocator.alloc ||
                                         s->sim.desc.allocator.free != d.allocator.free ||
                                         s->sim.desc.allocator.user != d.allocator.user),
            NBODY_BAD_ALLOCATOR);
    fz_may(&codes, 1, NBODY_NOT_FINITE);                    /* what moves may become infinite */
    fz_may(&codes, 1, NBODY_TOO_LARGE);
    for (step = 0; step < 3 && r == NBODY_OK; step++) {
        if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
        r = nbody_step(&s->sim, &d, &b, dt, (nbody_integrator)integrator);
        FZ_TRACE("step n %d dt %g by %d: %s", b.n, (double)dt, integrator, nbody_result_text(r));
        if (s->which < 2)
            fz_may(&codes, s->heap[s->which].failed, NBODY_OUT_OF_MEMORY),
                s->heap[s->which].fail_at = 0;
        FZ_CHECK_CODE(fz_right(&codes, (int)r), nbody_result_text(r));
        if (step == 0 && (r == NBODY_BAD_OPTION || r == NBODY_BAD_LEVELS || r == NBODY_BAD_NUMBER ||
                          r == NBODY_BAD_SQUARE || r == NBODY_BAD_ALLOCATOR ||
                          /* before anything moved */
                          r == NBODY_BAD_ARGUMENT || (r == NBODY_NOT_FINITE && !finite)))
            FZ_CHECK(memcmp(was, pos, 2 * (size_t)n * sizeof(real)) == 0 &&
                     memcmp(was + 2 * n, vel, 2 * (size_t)n * sizeof(real)) == 0);
    }
    b.n = n;
    FZ_CHECK(nbody_energy(&b, NULL, &energies) == NBODY_OK);
    s->built = 0; /* of other bodies */
    if (s->sim.frame) nbody_free(&s->sim);
    free(was);
    free(acc);
    free(vel);
    free(pos);
    fz_drop_points(&v);
    fz_drop_points(&p);
}

static void op_reserve(state *s)
{
    nbody_desc d = any_desc(s);
    int32_t const n = fz_u8(s->f) < 250 ? fz_count(s->f) : (int32_t)fz_u32(s->f);
    fz_codes codes = codes_of_desc(&d);
    nbody_result r;
    if (s->which == 2 && (n > 4096 && n <= (1 << 30) - 512)) return;
    fz_must(&codes, n < 0, NBODY_BAD_ARGUMENT);
    fz_must(&codes, n > (1 << 30) - 512, NBODY_TOO_MANY);
    fz_may(&codes, n > 1 << 24, NBODY_TOO_MANY);
    fz_must(&codes,
            nbody_bytes(&s->sim) > 0 && (s->sim.desc.allocator.alloc != d.allocator.alloc ||
                                         s->sim.desc.allocator.free != d.allocator.free ||
                                         s->sim.desc.allocator.user != d.allocator.user),
            NBODY_BAD_ALLOCATOR);
    if (s->which < 2) fz_plan_failure(s->f, &s->heap[s->which]);
    r = nbody_reserve(&s->sim, &d, n);
    FZ_TRACE("reserve %d: %s", n, nbody_result_text(r));
    if (s->which < 2)
        fz_may(&codes, s->heap[s->which].failed, NBODY_OUT_OF_MEMORY),
            s->heap[s->which].fail_at = 0;
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nbody_result_text(r));
    check_empty(s);
}

static void op_plain(state *s)
{
    nbody_desc d = any_desc(s), out;
    int32_t const n = fz_count(s->f);
    fz_codes codes = codes_of_desc(&d);
    nbody_result r = nbody_defaults(&out, &d, n);
    int code;
    FZ_CHECK_CODE(fz_right(&codes, (int)r), nbody_result_text(r));
    if (r == NBODY_OK) {
        FZ_CHECK(out.method != NBODY_AUTO && out.sources != NBODY_SOURCES_AUTO && out.order > 0 &&
                 out.subcells > 0 && out.gravity != 0 && out.levels > 0);
        FZ_CHECK(is_tree(&out) || out.method == NBODY_DIRECT);
    }
    FZ_CHECK(nbody_levels_for(&d, n) >= 1 && nbody_levels_for(&d, INT32_MAX) <= NBODY_MAX_LEVELS &&
             nbody_levels_for(NULL, -1) >= 1);
    for (code = -1; code <= NBODY_RESULT_COUNT; code++)
        FZ_CHECK(nbody_result_text((nbody_result)code) != NULL);
    FZ_CHECK(nbody_version() > 0 && nbody_defaults(NULL, &d, n) == NBODY_BAD_ARGUMENT);
    nbody_free(NULL);
    if (fz_u8(s->f) & 1) {
        nbody_free(&s->sim);
        check_empty(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz f = fz_of(data, size);
    state s;
    int ops;
    memset(&s, 0, sizeof s);
    s.f = &f;
    s.heap[0] = fz_heap_of(HEAP_MOST);
    s.heap[1] = fz_heap_of(HEAP_MOST);
    s.which = fz_below(&f, 3);
    op_build(&s);
    for (ops = 0; ops < OPS && fz_left(&f) > 0; ops++) {
        switch (fz_below(&f, 11)) {
        case 0: case 1: case 2: op_build(&s); break;
        case 3: case 4: op_fields_at(&s); break;
        case 5: op_count(&s); break;
        case 6: op_step(&s); break;
        case 7: op_reserve(&s); break;
        case 9: case 10: op_sets(&s); break;
        default: op_plain(&s);
        }
    }
    nbody_free(&s.sim);
    fz_drop_points(&s.points);
    free(s.mass);
    FZ_CHECK(s.heap[0].blocks == 0 && s.heap[1].blocks == 0);
    return 0;
}
