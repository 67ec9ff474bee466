/* test_vortex.c - NBODY_VORTEX and the cores: velocities and stream functions against direct sums
   in long double, and the exact motion of a pair and of a ring.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_vortex.c -o test_vortex -lcmocka -lm && ./test_vortex

   Environment: TEST_SMALL=1, fewer bodies. */

#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

static nbody_desc now;

static void describe_now(void)
{
    print_error("method %d law %d core %d order %d sources %d softening %g levels %d leaf %d\n",
                (int)now.method, (int)now.law, (int)now.core, (int)now.order, (int)now.sources,
                (double)now.softening, (int)now.levels, (int)now.leaf);
}

/* ------------------------------------------------------------------------------------------------
   The oracle
   ---------------------------------------------------------------------------------------------- */

/* The integral of exp(-t) / t from q on, with t = exp(s): Simpson's rule up to where it ends. */
static double exponential_integral(double q)
{
    int const steps = 4000;
    double const first = log(q), last = log(60.0), h = (last - first) / steps;
    double sum = 0;
    int k;
    if (q >= 60) return 0;
    for (k = 0; k <= steps; k++)
        sum += exp(-exp(first + h * k)) * (k == 0 || k == steps ? 1 : k % 2 ? 4 : 2);
    return sum * h / 3;
}

/* The same in a table over log(q), summed up from the end, entry by entry. */
enum { TABLE = 6000 };
static double table[TABLE + 2];
static const double table_from = -24, table_to = 4.2;

static void fill_table(void)
{
    double const h = (table_to - table_from) / TABLE;
    int k;
    table[TABLE + 1] = 0; /* 1e-31 */
    for (k = TABLE; k >= 0; k--) {
        double const s = table_from + h * k;
        table[k] = table[k + 1] + h / 6 * (exp(-exp(s)) + 4 * exp(-exp(s + h / 2)) +
                                           exp(-exp(s + h)));
    }
}

/* Between the entries: a parabola through the three nearest. */
static double from_table(double q)
{
    double const at = (log(q) - table_from) / (table_to - table_from) * TABLE;
    int const k = at < 1 ? 1 : (int)(at + 0.5);
    double const x = at - k;
    if (k >= TABLE) return 0;
    if (q <= exp(table_from)) return -0.57721566490153286 - log(q);
    return table[k] + x * (table[k + 1] - table[k - 1]) / 2 +
           x * x * (table[k + 1] - 2 * table[k] + table[k - 1]) / 2;
}

typedef struct flow { double x, y, psi, share, psi_share; } flow;

/* What n vortices do at a point; self: the one that is there, or -1. */
static flow exact_flow(const nbody_desc *d, const oracle_body *b, int32_t n, double x, double y,
                       int32_t self)
{
    long double const turn = 2 * 3.14159265358979323846264L, s2 = (long double)d->softening *
                                                                  (long double)d->softening;
    long double vx = 0, vy = 0, psi = 0, share = 0, psi_share = 0;
    flow f;
    int32_t j;
    for (j = 0; j < n; j++) {
        long double const rx = (long double)x - (long double)b[j].x,
                          ry = (long double)y - (long double)b[j].y, r2 = rx * rx + ry * ry,
                          c = (long double)b[j].m * (long double)d->gravity / turn;
        long double g, logarithm;
        if (j == self || (r2 == 0 && s2 == 0)) continue;
        if (d->core == NBODY_GAUSSIAN && s2 > 0) {
            g = r2 > 0 ? -expm1l(-r2 / s2) / r2 : 1 / s2;
            logarithm = r2 > 0 ? (logl(r2) + (long double)from_table((double)(r2 / s2))) / 2
                               : (logl(s2) - 0.57721566490153286L) / 2;
        } else {
            g = 1 / (r2 + s2);
            logarithm = logl(r2 + s2) / 2;
        }
        vx -= c * g * ry;
        vy += c * g * rx;
        psi -= c * logarithm;
        share += fabsl(c * g) * sqrtl(r2);
        psi_share += fabsl(c) * (1 + fabsl(logarithm));
    }
    f.x = (double)vx;
    f.y = (double)vy;
    f.psi = (double)psi;
    f.share = (double)share;
    f.psi_share = (double)psi_share;
    return f;
}

static double largest(double a, double b) { return a > b || a != a ? a : b; }

/* The largest errors, as shares of the sums of all |terms|: of velocities, of stream functions. */
typedef struct errors { double velocity, psi; } errors;

static errors errors_of(const nbody_desc *d, const oracle_scene *s, const real *at, int32_t count,
                        const real *velocity, const real *psi)
{
    errors e = {0, 0};
    int32_t i, step = count / 150 + 1;
    for (i = 0; i < count; i += step) {
        const real *p = (at ? at : s->pos) + 2 * i;
        flow const f = exact_flow(d, s->body, s->n, (double)p[0], (double)p[1], at ? -1 : i);
        e.velocity = largest(hypot((double)velocity[2 * i] - f.x,
                                   (double)velocity[2 * i + 1] - f.y) / f.share, e.velocity);
        if (psi) e.psi = largest(fabs((double)psi[i] - f.psi) / f.psi_share, e.psi);
    }
    return e;
}

/* ------------------------------------------------------------------------------------------------
   Fields
   ---------------------------------------------------------------------------------------------- */

static nbody_desc vortices(nbody_method method, int order, nbody_core core, double softening)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.law = NBODY_VORTEX;
    d.method = method;
    d.order = order;
    d.gravity = 1;
    d.core = core;
    d.softening = (real)softening;
    describe = describe_now;
    return d;
}

static const struct { nbody_method method; int order; double bar; } methods[] = {
    {NBODY_DIRECT, 0, 1e-14},      {NBODY_FORCE_NODES, 4, 2e-2}, {NBODY_FORCE_NODES, 8, 5e-5},
    {NBODY_FORCE_NODES, 12, 2e-7}, {NBODY_AUTO, 4, 2e-2}};

static const double cores[] = {0, 1e-5, 0.002, 0.011, 0.06, 0.4, 5};

/* Bodies, and points among them and far away. */
static void check_fields(const oracle_scene *s, const nbody_desc *d, double bar)
{
    enum { POINTS = 64 };
    wl_random r = wl_seed(3);
    nbody sim = {0};
    real *velocity = NEW(real, 2 * (size_t)s->n), *psi = NEW(real, s->n);
    real at[2 * POINTS], at_velocity[2 * POINTS], at_psi[POINTS];
    nbody_error error;
    errors e;
    int k;
    now = *d;
    bar += IS_FLOAT ? 4e-5 : 0; /* of deep cells */
    for (k = 0; k < 2 * POINTS; k++) at[k] = oracle_between(&r, k % 16 ? -0.2 : -5, 1.2);
    CHECK_RESULT(nbody_fields(&sim, d, s->pos, 0, s->mass, s->n, velocity, psi), NBODY_OK);
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    e = errors_of(d, s, NULL, s->n, velocity, psi);
    CHECK_BELOW(e.velocity, bar);
    CHECK_BELOW(e.psi, bar + (IS_FLOAT ? 2e-6 : 1e-10)); /* the oracle's table */
    CHECK_RESULT(nbody_fields_at(&sim, at, 0, POINTS, at_velocity, at_psi, NULL), NBODY_OK);
    e = errors_of(d, s, at, POINTS, at_velocity, at_psi);
    CHECK_BELOW(e.velocity, bar);
    CHECK_BELOW(e.psi, bar + (IS_FLOAT ? 2e-6 : 1e-10));
    CHECK_RESULT(nbody_estimate(&sim, velocity, 64, 1, &error), NBODY_OK);
    CHECK_BELOW(error.share, bar);
    CHECK_RESULT(nbody_verify(&sim, velocity, 64, 2, bar), NBODY_OK);
    velocity[0] += 1 + 2 * (velocity[0] < 0 ? -velocity[0] : velocity[0]); /* the error is seen */
    CHECK_RESULT(nbody_estimate(&sim, velocity, s->n, 1, &error), NBODY_OK);
    CHECK(error.share > 1e-4);
    nbody_free(&sim);
    free(velocity);
    free(psi);
}

static void test_fields(void **state)
{
    static const int inputs[] = {ORACLE_SIGNS, ORACLE_CLUMPS, ORACLE_PILES};
    int const small = small_run() || SANITIZED;
    int input, m, c, core;
    (void)state;
    fill_table();
    for (input = 0; input < COUNT_OF(inputs); input++) {
        oracle_scene s;
        int32_t i;
        oracle_make(&s, inputs[input], small ? 200 : 700, 1, &dice);
        for (i = 0; i < s.n; i++)
            s.body[i].m = (double)(s.mass[i] = (real)(s.body[i].m + (i % 3 ? 0.5 : -0.7)));
        for (m = 0; m < COUNT_OF(methods); m++)
            for (c = 0; c < COUNT_OF(cores); c++)
                for (core = 0; core < 2; core++) {
                    nbody_desc d = vortices(methods[m].method, methods[m].order, (nbody_core)core,
                                            cores[c]);
                    if ((m + c + core + input) % (small ? 6 : 3) != 0) continue;
                    d.gravity = (real)(c % 2 ? 1.5 : -1);
                    d.leaf = methods[m].method == NBODY_FORCE_NODES ? 12 : 0;
                    check_fields(&s, &d, methods[m].bar);
                }
        oracle_forget(&s);
    }
}

/* Circulations of one sign may have virtual particles and mass centres. */
static void test_mass_centres(void **state)
{
    oracle_scene s;
    int kind, c;
    (void)state;
    fill_table();
    oracle_make(&s, ORACLE_UNIFORM, small_run() ? 200 : 500, 1, &dice);
    for (kind = 0; kind < 4; kind++)
        for (c = 0; c < COUNT_OF(cores); c++) {
            nbody_desc d = vortices(kind < 2 ? NBODY_VIRTUAL_PARTICLES : NBODY_FORCE_NODES,
                                    kind == 3 ? 4 : kind < 2 ? kind + 1 : 1, NBODY_GAUSSIAN,
                                    cores[c]);
            d.sources = NBODY_MASS_CENTRES;
            d.leaf = 10;
            check_fields(&s, &d, kind == 2 ? 3e-2 : 1e-2);
        }
    oracle_forget(&s);
}

/* NBODY_INVERSE has the same cores: the flow is the field, turned. */
static void test_turned(void **state)
{
    oracle_scene s;
    int c, core;
    (void)state;
    oracle_make(&s, ORACLE_SIGNS, 400, 1, &dice);
    for (c = 0; c < COUNT_OF(cores); c++)
        for (core = 0; core < 2; core++) {
            nbody_desc d = vortices(NBODY_FORCE_NODES, 6, (nbody_core)core, cores[c]);
            nbody flow_sim = {0}, field_sim = {0};
            real *velocity = NEW(real, 2 * (size_t)s.n), *psi = NEW(real, s.n),
                 *acc = NEW(real, 2 * (size_t)s.n), *potential = NEW(real, s.n);
            double const turn = 2 * ORACLE_PI;
            int32_t i;
            now = d;
            d.leaf = 8;
            CHECK_RESULT(nbody_fields(&flow_sim, &d, s.pos, 0, s.mass, s.n, velocity, psi),
                         NBODY_OK);
            d.law = NBODY_INVERSE;
            CHECK_RESULT(nbody_fields(&field_sim, &d, s.pos, 0, s.mass, s.n, acc, potential),
                         NBODY_OK);
            for (i = 0; i < s.n; i++) {
                double const most = 3 * REAL_EPSILON *
                                    (1 + hypot((double)acc[2 * i], (double)acc[2 * i + 1]));
                CHECK_BELOW(fabs((double)velocity[2 * i] * turn - (double)acc[2 * i + 1]), most);
                CHECK_BELOW(fabs((double)velocity[2 * i + 1] * turn + (double)acc[2 * i]), most);
                CHECK_BELOW(fabs((double)psi[i] * turn + (double)potential[i]),
                            3 * REAL_EPSILON * (1 + fabs((double)potential[i])));
            }
            nbody_free(&flow_sim);
            nbody_free(&field_sim);
            free(velocity);
            free(psi);
            free(acc);
            free(potential);
        }
    oracle_forget(&s);
}

/* ------------------------------------------------------------------------------------------------
   Cores and cells
   ---------------------------------------------------------------------------------------------- */

/* No side of a cell is below what the core reaches, and the cells are as small as that allows. */
static void test_depth(void **state)
{
    double const reach = sqrt(IS_FLOAT ? 18 : 40);
    oracle_scene s;
    double core;
    int fixed;
    (void)state;
    oracle_make(&s, ORACLE_SIGNS, 3000, 1, &dice);
    for (core = 1e-6; core < 10; core *= 1.7)
        for (fixed = 0; fixed < 2; fixed++) {
            nbody_desc d = vortices(NBODY_FORCE_NODES, 4, NBODY_GAUSSIAN, core);
            nbody sim = {0};
            double side;
            now = d;
            d.leaf = 1;
            d.levels = fixed ? 9 : 0;
            if (fixed) d.leaf = 0;
            CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
            side = sim.frame->size / (double)(1 << (sim.frame->levels - 1));
            CHECK(sim.frame->levels == 1 || side >= reach * core);
            CHECK(sim.frame->levels == (fixed ? 9 : NBODY_MAX_LEVELS) || side / 2 < reach * core ||
                  (!fixed && sim.frame->levels >= 9));
            nbody_free(&sim);
        }
    oracle_forget(&s);
}

/* A core that is much narrower than the distances changes no bit of the bare law; one that is wider
   than the square gives the direct sum. */
static void test_narrow_and_wide(void **state)
{
    oracle_scene s;
    size_t bytes;
    real *a, *b;
    nbody sim = {0};
    nbody_desc d;
    int32_t i;
    (void)state;
    oracle_make(&s, ORACLE_LATTICE, 900, 1, &dice); /* 1/30 apart */
    bytes = 2 * (size_t)s.n * sizeof *a;
    a = NEW(real, 2 * (size_t)s.n);
    b = NEW(real, 2 * (size_t)s.n);
    now = d = vortices(NBODY_FORCE_NODES, 4, NBODY_GAUSSIAN, 0.005);
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, a), NBODY_OK);
    d.softening = 0;
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, b), NBODY_OK);
    CHECK(same(a, b, bytes));
    d.softening = 1;
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, a), NBODY_OK);
    CHECK(sim.frame->levels == 1 && sim.frame->deepest == 0);
    d.method = NBODY_DIRECT;
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, b), NBODY_OK);
    for (i = 0; i < 2 * s.n; i++) /* in another order */
        CHECK_BELOW(fabs((double)a[i] - (double)b[i]), 200 * REAL_EPSILON);
    nbody_free(&sim);
    free(a);
    free(b);
    oracle_forget(&s);
}

/* Two bodies at any distance, E_1 by an integral. */
static void test_two(void **state)
{
    int k, core;
    (void)state;
    for (k = -60; k <= 20; k++)
        for (core = 0; core < 2; core++) {
            double const width = 0.37, distance = pow(10, k / 10.0);
            real const pos[4] = {0, 0, (real)distance, 0}, mass[2] = {3, 1};
            double const r = (double)pos[2], q = r * r / width / width;
            real v[4], psi[2];
            nbody sim = {0};
            nbody_desc d = vortices(NBODY_DIRECT, 0, (nbody_core)core, width);
            double want, want_psi;
            now = d;
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, 2, v, psi), NBODY_OK);
            want = core ? -expm1(-q) / r : r / (r * r + width * width);
            want_psi = core ? (2 * log(r) + exponential_integral(q)) / 2
                            : log(r * r + width * width) / 2;
            want *= 3 / (2 * ORACLE_PI);
            want_psi *= -3 / (2 * ORACLE_PI);
            CHECK(v[2] == 0);
            CHECK_BELOW(fabs((double)v[3] - want), 8 * REAL_EPSILON * want);
            CHECK_BELOW(fabs((double)v[1] + want / 3), 8 * REAL_EPSILON * want);
            CHECK_BELOW(fabs((double)psi[1] - want_psi),
                        8 * REAL_EPSILON * (1 + fabs(want_psi)) + 1e-11);
            nbody_free(&sim);
        }
}

/* ------------------------------------------------------------------------------------------------
   Motion
   ---------------------------------------------------------------------------------------------- */

enum { MOST = 64 };

/* x + h k, in double. */
static void shifted(const double *x, double h, const double *k, int count, double *out)
{
    int i;
    for (i = 0; i < count; i++) out[i] = x[i] + h * k[i];
}

static void slope(nbody *sim, const nbody_desc *d, const double *x, const real *mass, int n,
                  double *k)
{
    real pos[2 * MOST], v[2 * MOST];
    int i;
    for (i = 0; i < 2 * n; i++) pos[i] = (real)x[i];
    CHECK_RESULT(nbody_accelerations(sim, d, pos, 0, mass, n, v), NBODY_OK);
    for (i = 0; i < 2 * n; i++) k[i] = (double)v[i];
}

/* The classical Runge-Kutta method of fourth order. */
static void move(const nbody_desc *d, double *x, const real *mass, int n, double time, int steps)
{
    double const h = time / steps;
    double a[2 * MOST], b[2 * MOST], c[2 * MOST], e[2 * MOST], at[2 * MOST];
    nbody sim = {0};
    int step, i;
    for (step = 0; step < steps; step++) {
        slope(&sim, d, x, mass, n, a);
        shifted(x, h / 2, a, 2 * n, at);
        slope(&sim, d, at, mass, n, b);
        shifted(x, h / 2, b, 2 * n, at);
        slope(&sim, d, at, mass, n, c);
        shifted(x, h, c, 2 * n, at);
        slope(&sim, d, at, mass, n, e);
        for (i = 0; i < 2 * n; i++) x[i] += h * (a[i] + 2 * b[i] + 2 * c[i] + e[i]) / 6;
    }
    nbody_free(&sim);
}

/* The velocity of a vortex at distance r from one of circulation 1. */
static double speed(const nbody_desc *d, double r)
{
    double const s = (double)d->softening;
    if (s > 0 && d->core == NBODY_GAUSSIAN) return -expm1(-r * r / s / s) / (2 * ORACLE_PI * r);
    return r / (2 * ORACLE_PI * (r * r + s * s));
}

/* Circulations a and b, r apart: they turn around their centre by (a + b) v(r) / r in a unit of
   time; a and -a move on side by side at a v(r), to the left where the lower one turns
   counter-clockwise. */
static void test_pair(void **state)
{
    static const double widths[] = {0, 0.3, 1};
    int w, core;
    (void)state;
    for (w = 0; w < COUNT_OF(widths); w++)
        for (core = 0; core < 2; core++) {
            nbody_desc d = vortices(NBODY_DIRECT, 0, (nbody_core)core, widths[w]);
            real const unequal[2] = {3, 1}, opposite[2] = {2, -2};
            double x[4] = {-0.25, 0, 0.75, 0}, y[4] = {0, -0.5, 0, 0.5}, angle;
            double const bar = IS_FLOAT ? 3e-6 : 1e-9;
            now = d;
            move(&d, x, unequal, 2, 5, 400);
            angle = 4 * speed(&d, 1) * 5;
            CHECK_BELOW(hypot(x[2] - 0.75 * cos(angle), x[3] - 0.75 * sin(angle)), bar);
            CHECK_BELOW(hypot(x[0] + 0.25 * cos(angle), x[1] + 0.25 * sin(angle)), bar);
            move(&d, y, opposite, 2, 5, 400);
            CHECK_BELOW(hypot(y[0] + 10 * speed(&d, 1), y[1] + 0.5), bar);
            CHECK_BELOW(hypot(y[2] + 10 * speed(&d, 1), y[3] - 0.5), bar);
        }
}

/* n equal vortices on a circle: the same velocity for all, along the circle; the sum over the
   others, 2 sin(half the angle between them) away. Without a core: (n - 1) / (4 pi radius). */
static double ring_speed(const nbody_desc *d, int n, double radius)
{
    double sum = 0;
    int k;
    for (k = 1; k < n; k++) {
        double const half = ORACLE_PI * k / n;
        sum += speed(d, 2 * radius * sin(half)) * sin(half);
    }
    return sum;
}

static void test_ring_velocities(void **state)
{
    enum { N = 2000 };
    static real pos[2 * N], v[2 * N];
    static const double widths[] = {0, 0.001, 0.01, 0.1};
    int w, core, i;
    (void)state;
    for (w = 0; w < COUNT_OF(widths); w++)
        for (core = 0; core < 2; core++) {
            nbody_desc d = vortices(NBODY_FORCE_NODES, 12, (nbody_core)core, widths[w]);
            nbody sim = {0};
            double const want = ring_speed(&d, N, 1);
            d.leaf = 50; /* several levels */
            now = d;
            if (w == 0) CHECK_BELOW(fabs(want / ((N - 1) / (4 * ORACLE_PI)) - 1), 1e-12);
            for (i = 0; i < N; i++) {
                pos[2 * i] = (real)cos(2 * ORACLE_PI * i / N);
                pos[2 * i + 1] = (real)sin(2 * ORACLE_PI * i / N);
            }
            CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, N, v), NBODY_OK);
            CHECK(sim.frame->levels > 3 || (w == 3 && core));
            for (i = 0; i < N; i++)
                CHECK_BELOW(hypot((double)v[2 * i] + want * (double)pos[2 * i + 1],
                                  (double)v[2 * i + 1] - want * (double)pos[2 * i]),
                            (IS_FLOAT ? 2e-4 : 5e-9) * want); /* positions are rounded */
            nbody_free(&sim);
        }
}

/* It turns as a whole, by the tree as well: 24 of them, a quarter of a turn, or a part of that. */
static void test_ring_turns(void **state)
{
    enum { N = 24 };
    static const double widths[] = {0, 0.02};
    int const parts = small_run() ? 5 : 1;
    double const turn = ORACLE_PI / 2 / parts;
    int w, i;
    (void)state;
    SLOW_TEST();
    for (w = 0; w < COUNT_OF(widths); w++) {
        nbody_desc d = vortices(NBODY_FORCE_NODES, 12, NBODY_GAUSSIAN, widths[w]);
        double x[2 * N], time;
        double const bar = IS_FLOAT ? 2e-2 : 2e-7; /* it is unstable: errors grow by e^(N / 4) */
        now = d;
        d.leaf = 1;
        time = turn / ring_speed(&d, N, 1);
        for (i = 0; i < N; i++) {
            x[2 * i] = cos(2 * ORACLE_PI * i / N);
            x[2 * i + 1] = sin(2 * ORACLE_PI * i / N);
        }
        move(&d, x, NULL, N, time, 200 / parts);
        for (i = 0; i < N; i++)
            CHECK_BELOW(hypot(x[2 * i] - cos(2 * ORACLE_PI * i / N + turn),
                              x[2 * i + 1] - sin(2 * ORACLE_PI * i / N + turn)), bar);
    }
}

/* The sum of circulation times velocity is 0: the vorticity's centre stays, to rounding. */
static void test_impulse(void **state)
{
    oracle_scene s;
    int c, core, order;
    (void)state;
    oracle_make(&s, ORACLE_SIGNS, 1500, 1, &dice);
    for (c = 0; c < COUNT_OF(cores); c++)
        for (core = 0; core < 2; core++)
            for (order = 4; order <= 8; order += 4) {
                nbody_desc d = vortices(NBODY_FORCE_NODES, order, (nbody_core)core, cores[c]);
                nbody sim = {0};
                real *v = NEW(real, 2 * (size_t)s.n);
                double x = 0, y = 0, all = 0;
                int32_t i;
                now = d;
                d.levels = 5;
                CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, v), NBODY_OK);
                for (i = 0; i < s.n; i++) {
                    double const m = (double)s.mass[i];
                    x += m * (double)v[2 * i];
                    y += m * (double)v[2 * i + 1];
                    all += fabs(m) * hypot((double)v[2 * i], (double)v[2 * i + 1]);
                }
                CHECK_BELOW(hypot(x, y) / all, IS_FLOAT ? 1e-7 : 1e-14);
                nbody_free(&sim);
                free(v);
            }
    oracle_forget(&s);
}

/* ------------------------------------------------------------------------------------------------
   Calls
   ---------------------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    real pos[4] = {0, 0, 1, 0}, vel[4] = {0, 0, 0, 0}, acc[4] = {7, 7, 7, 7};
    nbody_bodies b = {pos, vel, acc, NULL, 2, 0};
    nbody sim = {0};
    nbody_desc d = vortices(NBODY_DIRECT, 0, NBODY_PLUMMER, 0);
    (void)state;
    now = d;
    CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_LEAPFROG), NBODY_BAD_OPTION);
    CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_BAD_OPTION);
    CHECK(acc[0] == 7 && vel[0] == 0 && pos[2] == 1);
    d.law = NBODY_INVERSE_SQUARE;
    d.core = NBODY_GAUSSIAN;
    CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, 2, acc), NBODY_BAD_OPTION);
    d.softening = 1;
    CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, 2, acc), NBODY_BAD_OPTION);
    d.law = NBODY_INVERSE;
    CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_LEAPFROG), NBODY_OK);
    d.core = (nbody_core)2;
    CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, 2, acc), NBODY_BAD_OPTION);
    d.core = (nbody_core)-1;
    CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, NULL, 2, acc), NBODY_BAD_OPTION);
    CHECK(sim.frame == NULL);
    nbody_free(&sim);
}

static const struct CMUnitTest tests[] = {
    TEST(test_fields),
    TEST(test_mass_centres),
    TEST(test_turned),
    TEST(test_depth),
    TEST(test_narrow_and_wide),
    TEST(test_two),
    TEST(test_pair),
    TEST(test_ring_velocities),
    TEST(test_ring_turns),
    TEST(test_impulse),
    TEST(test_refused),
};

int main(void)
{
    int failed = 0;
    RUN_GROUP(failed, tests, NULL);
    return failed;
}
