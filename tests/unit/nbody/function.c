/* function.c - a part of test_nbody.c: NBODY_FUNCTION, laws of the caller, against direct sums in
   long double and against the laws of the header.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What `user` points to: a length, and how the functions were called. */
typedef struct called { double length, least; int64_t forces, potentials; } called;

static double note_force(double d, void *user)
{
    called *of = (called *)user;
    of->forces++;
    if (d < of->least) of->least = d;
    return of->length;
}

static double note_potential(double d, void *user)
{
    called *of = (called *)user;
    of->potentials++;
    if (d < of->least) of->least = d;
    return of->length;
}

static double square_force(double d, void *user) { return note_force(d, user) * 0 + 1 / (d * d); }
static double square_potential(double d, void *user) { return note_potential(d, user) * 0 - 1 / d; }
static double line_force(double d, void *user) { return note_force(d, user) * 0 + 1 / d; }
static double line_potential(double d, void *user) { return note_potential(d, user) * 0 + log(d); }

/* exp(-d / length) / d, a screened charge. */
static double yukawa_force(double d, void *user)
{
    double const x = d / note_force(d, user);
    return (1 + x) * exp(-x) / (d * d);
}

static double yukawa_potential(double d, void *user)
{
    return -exp(-d / note_potential(d, user)) / d;
}

static double bell_force(double d, void *user)
{
    double const x = d / note_force(d, user);
    return x * exp(-x * x);
}

static double bell_potential(double d, void *user)
{
    double const length = note_potential(d, user), x = d / length;
    return -length * exp(-x * x) / 2;
}

static double log_force(double d, void *user)
{
    double const length = note_force(d, user);
    return d / (d * d + length * length);
}

static double log_potential(double d, void *user)
{
    double const length = note_potential(d, user);
    return log(d * d + length * length) / 2;
}

static const struct {
    double (*force)(double, void *), (*potential)(double, void *);
    double length;
} functions[] = {{yukawa_force, yukawa_potential, 0.1}, {bell_force, bell_potential, 0.2},
    {log_force, log_potential, 0.02}, {yukawa_force, yukawa_potential, 0.01}};

static nbody_desc desc_of_function(int f, nbody_method method, int order, called *user)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.method = method;
    d.order = order;
    d.law = NBODY_FUNCTION;
    d.function.force = functions[f].force;
    d.function.potential = functions[f].potential;
    d.function.user = user;
    memset(user, 0, sizeof *user);
    user->length = functions[f].length;
    user->least = 1e300;
    return d;
}

/* At a point, by the definition; self: the body there, or -1. */
static oracle_field exact_function(const nbody_desc *d, const oracle_scene *s, double x, double y,
    int32_t self)
{
    long double const s2 = (long double)d->softening * (long double)d->softening;
    long double fx = 0, fy = 0, phi = 0;
    oracle_field field = {0, 0, 0, 0, 0};
    int32_t j;
    for (j = 0; j < s->n; j++) {
        long double const dx = (long double)s->body[j].x - x, dy = (long double)s->body[j].y - y,
                          d2 = dx * dx + dy * dy, r = sqrtl(d2 + s2), m = s->body[j].m;
        if (j == self || (d2 == 0 && s2 == 0)) continue;
        if (d2 > 0) {
            long double const f = m * (long double)d->function.force((double)r, d->function.user);
            fx += f * dx / r;
            fy += f * dy / r;
            field.share += (double)(fabsl(f) * sqrtl(d2) / r);
        }
        phi += m * (long double)d->function.potential((double)r, d->function.user);
        field.p_share +=
            (double)m * (1 + fabs(d->function.potential((double)r, d->function.user)));
    }
    field.x = (double)fx;
    field.y = (double)fy;
    field.p = (double)phi;
    return field;
}

/* Largest errors of forces and potentials at bodies, as shares of the sums of |terms|. */
static double error_of_function(const nbody_desc *d, const oracle_scene *s, const outcome *o)
{
    double worst = 0;
    int32_t i, step = s->n / 60 + 1;
    for (i = 0; i < s->n; i += step) {
        oracle_field const f = exact_function(d, s, s->body[i].x, s->body[i].y, i);
        double const e = hypot((double)o->acc[2 * i] - f.x, (double)o->acc[2 * i + 1] - f.y),
                     q = fabs((double)o->potential[i] - f.p);
        if (!(e / f.share <= worst)) worst = e / f.share;
        if (!(q / f.p_share <= worst)) worst = q / f.p_share;
    }
    return worst;
}

/* The same at points, as shares of the largest sum at one of them: far from all bodies a law that
   falls fast leaves little, and little of that is right. */
static double error_at_points(const nbody_desc *d, const oracle_scene *s, const nbody *sim)
{
    enum { AT = 40 };
    real at[2 * AT], acc[2 * AT], potential[AT];
    double e = 0, q = 0, share = 0, p_share = 0;
    int k;
    for (k = 0; k < 2 * AT; k++) at[k] = (real)((double)wl_u(&dice) * 3 - 1);
    for (k = 0; k < AT; k += 2) at[2 * k] = (real)wl_u(&dice), at[2 * k + 1] = (real)0.3;
    CHECK_RESULT(nbody_fields_at(sim, at, 0, AT, acc, potential, NULL), NBODY_OK);
    for (k = 0; k < AT; k++) {
        oracle_field const f =
            exact_function(d, s, (double)at[2 * k], (double)at[2 * k + 1], -1);
        e = fmax(e, hypot((double)acc[2 * k] - f.x, (double)acc[2 * k + 1] - f.y));
        q = fmax(q, fabs((double)potential[k] - f.p));
        share = fmax(share, f.share);
        p_share = fmax(p_share, f.p_share);
    }
    return fmax(e / share, q / p_share);
}

/* Half of the bodies in a clump. */
static oracle_scene clump_scene(int32_t n)
{
    oracle_scene s = scene_of(n);
    int32_t i;
    for (i = 0; i < n; i += 2) {
        s.pos[2 * i] = (real)0.6 + s.pos[2 * i] / 32;
        s.pos[2 * i + 1] = (real)0.3 + s.pos[2 * i + 1] / 32;
        s.body[i].x = (double)s.pos[2 * i];
        s.body[i].y = (double)s.pos[2 * i + 1];
    }
    return s;
}

/* By method and order: the largest share of any body that was seen, twice. */
static void test_function_errors(void **state)
{
    static const struct { nbody_method method; int order; double bar; } methods[] = {
        {NBODY_DIRECT, 0, 1e-14}, {NBODY_VIRTUAL_PARTICLES, 1, 2e-2}, {NBODY_FORCE_NODES, 1, 4e-2},
        {NBODY_FORCE_NODES, 2, 1.3}, {NBODY_FORCE_NODES, 4, 4e-2}, {NBODY_FORCE_NODES, 6, 5e-3},
        {NBODY_FORCE_NODES, 8, 1e-4}, {NBODY_FORCE_NODES, 10, 5e-6}, {NBODY_AUTO, 4, 6e-2}};
    int32_t const n = small_run() ? 300 : 1000;
    int f, m;
    (void)state;
    SLOW_TEST();
    dice = wl_seed(71);
    for (f = 0; f < 4; f++) for (m = 0; m < 9; m++) {
        oracle_scene s = clump_scene(n);
        called user;
        nbody_desc d = desc_of_function(f, methods[m].method, methods[m].order, &user);
        double const bar = methods[m].bar * (f == 3 ? 10 : 1); /* falls by e in half a leaf */
        outcome o;
        if (small_run() && (f + m) % 3) { oracle_forget(&s); continue; }
        if (m > 2 && m < 7) d.leaf = 30;
        if (m == 7) d.levels = 4; /* fewer tables */
        d.softening = m % 2 ? (real)0.003 : 0;
        note(&s, &d, "function");
        evaluate(&o, &d, &s);
        CHECK_BELOW(error_of_function(&d, &s, &o), bar + deep_share(&o.sim));
        CHECK_BELOW(error_at_points(&d, &s, &o.sim), bar + deep_share(&o.sim));
        CHECK_RESULT(nbody_validate(&o.sim), NBODY_OK);
        drop(&o);
        oracle_forget(&s);
    }
}

/* The header's laws, given as functions: what differs is rounding. */
static void test_function_of_the_laws(void **state)
{
    enum { N = 300 };
    int k, kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (k = kind % 2; k < 4; k += small_run() ? 2 : 1) {
        oracle_scene s = scene_of(N);
        nbody_desc d = desc_of(kind);
        outcome want, got;
        oracle_errors e;
        called user = {1, 1e300, 0, 0};
        oracle_field truth[N];
        double most = 0;
        int32_t i;
        if (d.method == NBODY_VIRTUAL_PARTICLES && d.order == 2) { oracle_forget(&s); continue; }
        d.law = k & 1 ? NBODY_INVERSE : NBODY_INVERSE_SQUARE;
        d.softening = k & 2 ? (real)0.02 : 0;
        d.gravity = (real)-1.5;
        note(&s, &d, "laws as functions");
        evaluate(&want, &d, &s);
        d.law = NBODY_FUNCTION;
        d.function.force = k & 1 ? line_force : square_force;
        d.function.potential = k & 1 ? line_potential : square_potential;
        d.function.user = &user;
        evaluate(&got, &d, &s);
        for (i = 0; i < N; i++) {
            truth[i] = exact_function(&d, &s, s.body[i].x, s.body[i].y, i);
            truth[i].x = (double)want.acc[2 * i];
            truth[i].y = (double)want.acc[2 * i + 1];
            truth[i].share *= 1.5;
            most = fmax(most, fabs((double)got.potential[i] - (double)want.potential[i]) /
                                  truth[i].p_share);
        }
        e = oracle_compare(got.acc, truth, NULL, N);
        /* 1 / d has a series of another length than the table */
        CHECK_BELOW(e.share, k == 1 && d.method == NBODY_FORCE_NODES ? 1e-2 : 2 * rounding());
        CHECK_BELOW(most, k == 1 && d.method == NBODY_FORCE_NODES ? 1e-2 : 2 * rounding());
        drop(&want);
        drop(&got);
        oracle_forget(&s);
    }
}

/* Several sets, one thread and tasks: the same bits. */
static void test_function_bits(void **state)
{
    int f, m;
    (void)state;
    for (f = 0; f < (small_run() ? 1 : 2); f++) for (m = 0; m < 3; m++) {
        static const nbody_method methods[] = {NBODY_DIRECT, NBODY_FORCE_NODES, NBODY_FORCE_NODES};
        int32_t const n = small_run() ? 200 : 400;
        oracle_scene s = clump_scene(n);
        called user;
        nbody_desc d = desc_of_function(f, methods[m], m == 1 ? 5 : m == 2 ? 1 : 0, &user);
        outcome fast, plain;
        d.leaf = 20;
        d.softening = f ? (real)0.01 : 0;
        evaluate(&fast, &d, &s);
        check_sets(&fast.sim, &s, &d, 4, 3);
        check_sets(&fast.sim, &s, &d, 3, 1);
        d.stage = NBODY_ONE_THREAD;
        evaluate(&plain, &d, &s);
        CHECK(same(fast.acc, plain.acc, 2 * (size_t)n * sizeof(real)));
        CHECK(same(fast.potential, plain.potential, (size_t)n * sizeof(real)));
        drop(&fast);
        drop(&plain);
        oracle_forget(&s);
    }
}

/* Forces cancel in pairs: DIRECT, and CHEBYSHEV with all leaves on one level. */
static void test_function_momentum(void **state)
{
    int f, m;
    (void)state;
    for (f = 0; f < 3; f++) for (m = 0; m < 2; m++) {
        oracle_scene s = scene_of(600);
        called user;
        nbody_desc d =
            desc_of_function(f, m ? NBODY_FORCE_NODES : NBODY_DIRECT, m ? 5 : 0, &user);
        double x = 0, y = 0, all = 0;
        outcome o;
        int32_t i;
        if (m) d.levels = 4;
        evaluate(&o, &d, &s);
        for (i = 0; i < s.n; i++) {
            x += s.body[i].m * (double)o.acc[2 * i];
            y += s.body[i].m * (double)o.acc[2 * i + 1];
            all += s.body[i].m * hypot((double)o.acc[2 * i], (double)o.acc[2 * i + 1]);
        }
        CHECK_BELOW(hypot(x, y) / all, IS_FLOAT ? 2e-6 : 1e-14);
        drop(&o);
        oracle_forget(&s);
    }
}

/* How often they are called, and never at distance 0: two bodies are at one point. */
static void test_function_calls(void **state)
{
    enum { N = 64 };
    oracle_scene s = scene_of(N);
    called user;
    nbody_desc d = desc_of_function(1, NBODY_DIRECT, 0, &user);
    real acc[2 * N], potential[N];
    nbody_error error;
    nbody sim = {0};
    int k;
    (void)state;
    memcpy(s.pos + 2 * 5, s.pos + 2 * 9, 2 * sizeof(real));
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, N, acc), NBODY_OK);
    CHECK(user.forces == N * (N - 1) - 2 && user.potentials == 0 && user.least > 0);
    CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, N, acc, potential), NBODY_OK);
    CHECK(user.forces == 2 * (N * (N - 1) - 2) && user.potentials == N * (N - 1) - 2);
    CHECK_RESULT(nbody_estimate(&sim, acc, N, 1, &error), NBODY_OK);
    CHECK_BELOW(error.share, IS_FLOAT ? 1e-6 : 1e-14);
    CHECK(error.given_share == error.share && user.least > 0);
    /* bodies at one point: in each other's potential if softened, as with the other laws */
    d.softening = (real)0.01;
    CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, N, acc, potential), NBODY_OK);
    CHECK(user.potentials == 2 * N * (N - 1) - 2 && user.least > 0);
    /* one level of nodes: a table of 40 offsets, order^4 entries each */
    d = desc_of_function(1, NBODY_FORCE_NODES, 2, &user);
    d.levels = 3;
    for (k = 1; k <= 2; k++) {
        int64_t const had = user.forces;
        nbody_counts counts;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, N, acc), NBODY_OK);
        CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
        CHECK(user.forces - had == 40 * 16 + counts.near_terms - N - 2 + counts.far_terms);
    }
    nbody_free(&sim);
    oracle_forget(&s);
}

/* Numbers that a float has no room for: lengths and masses have units of their own. */
static void test_function_units(void **state)
{
    oracle_scene s = scene_of(200);
    called user;
    nbody_desc d = desc_of_function(2, NBODY_FORCE_NODES, 6, &user);
    real *want = NEW(real, 400), *got = NEW(real, 400);
    nbody sim = {0};
    int32_t i;
    (void)state;
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, want), NBODY_OK);
    for (i = 0; i < 400; i++) s.pos[i] *= (real)1048576;
    user.length *= 1048576;
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, got), NBODY_OK);
    for (i = 0; i < 400; i++)
        CHECK_BELOW(fabs((double)got[i] * 1048576 - (double)want[i]),
            (IS_FLOAT ? 1e-5 : 1e-13) * (1 + fabs((double)want[i])));
    nbody_free(&sim);
    free(want);
    free(got);
    oracle_forget(&s);
}

static double no_number(double d, void *user)
{
    (void)user;
    return d > 0.5 ? d - d / (d - d) : d;
}

static void test_function_refused(void **state)
{
    oracle_scene s = scene_of(50);
    called user;
    nbody_desc const good = desc_of_function(0, NBODY_DIRECT, 0, &user);
    nbody_desc d = good;
    real acc[100], potential[50], mass[50];
    nbody sim = {0};
    (void)state;
    d.function.force = NULL;
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_BAD_ARGUMENT);
    d = good;
    d.core = NBODY_GAUSSIAN;
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_BAD_OPTION);
    d = good;
    d.method = NBODY_VIRTUAL_PARTICLES;
    d.order = 2;
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_BAD_OPTION);
    CHECK(!sim.frame);
    d = good;
    d.function.potential = NULL;
    CHECK_RESULT(nbody_reserve(&sim, &d, s.n), NBODY_OK);
    CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, acc, potential),
        NBODY_BAD_ARGUMENT);
    CHECK(!sim.frame);
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
    memset(mass, 0, sizeof mass);
    CHECK_RESULT(nbody_fields_again(&sim, mass, acc, potential), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_fields_at(&sim, s.pos, 0, 3, acc, potential, NULL), NBODY_BAD_ARGUMENT);
    CHECK(sim.frame && sim.m[0] > 0);
    CHECK_RESULT(nbody_fields_at(&sim, s.pos, 0, 3, acc, NULL, NULL), NBODY_OK);
    /* what is not a number goes through */
    d.function.force = no_number;
    CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
    CHECK(!nbody_i_finite((double)acc[0]));
    nbody_free(&sim);
    oracle_forget(&s);
}

/* Two bodies on a circle: the period of a spring, f(d) = d, does not depend on the radius. */
static double spring(double d, void *user) { return d * *(const double *)user; }

static void test_function_step(void **state)
{
    real pos[] = {-1, 0, 1, 0}, vel[4] = {0, 0, 0, 0}, acc[4];
    double strength = 2;
    nbody_bodies bodies = {pos, vel, acc, NULL, 2, 0};
    nbody_desc d = {0};
    nbody sim = {0};
    int i;
    (void)state;
    d.law = NBODY_FUNCTION;
    d.function.force = spring;
    d.function.user = &strength;
    /* x'' = -2 * 2 x: after pi, one period of 2 pi / 2, back where they were */
    for (i = 0; i < 1000; i++)
        CHECK_RESULT(nbody_step(&sim, &d, &bodies, (real)(ORACLE_PI / 1000), NBODY_LEAPFROG),
            NBODY_OK);
    CHECK_BELOW(fabs((double)pos[0] + 1), 1e-4);
    CHECK_BELOW(fabs((double)vel[0]), 1e-3);
    nbody_free(&sim);
}
