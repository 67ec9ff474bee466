/* test_nbody_lanes.c - instructions chosen at run time: AVX2 and plain ones give the same bits, and
   those of NBODY_ONE_THREAD. So do functions of the caller that NBODY_FORCE names, and by pointer.
   SPDX-License-Identifier: MIT OR Unlicense */

#include <fenv.h>

static int asked, answer; /* by the header, and to it */
#define NBODY_I_HAS_AVX2() (asked++, answer)

/* A law that the file names, by words that nbody.h uses too; and the same by pointer. */
static int calls, calls_with_0;

static inline double force(double d, void *user)
{
    double const q = 1 / (*(const double *)user + d * d);
    return d * q * q;
}

static inline double potential(double d, void *user)
{
    return -0.5 / (*(const double *)user + d * d);
}

static double called_force(double d, void *user)
{
    calls++;
    calls_with_0 += !(d > 0);
    return force(d, user);
}

static double called_potential(double d, void *user)
{
    calls++;
    calls_with_0 += !(d > 0);
    return potential(d, user);
}

#define NBODY_FORCE force
#define NBODY_POTENTIAL potential
#define NBODY_STATIC
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/parallel.h"
#include "../../common/testing.h"

static int wide_is_there(void)
{
#ifdef NBODY_I_AVX2
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}

/* Bodies in a square that is `wide`, half of them in a clump, some of them at the same place. */
typedef struct bodies { int32_t n; real *pos, *mass; } bodies;

static bodies new_bodies(int32_t n, double wide)
{
    wl_random r = wl_seed(29);
    bodies b;
    int32_t i;
    b.n = n;
    b.pos = NEW(real, 2 * (size_t)n);
    b.mass = NEW(real, 2 * (size_t)n); /* two sets */
    for (i = 0; i < n; i++) {
        double const side = i % 2 ? 0.01 : 1, from = i % 2 ? 0.7 : 0;
        b.pos[2 * i] = (real)(wide * (from + side * (double)wl_u(&r)));
        b.pos[2 * i + 1] = (real)(wide * (from + side * (double)wl_u(&r)));
        b.mass[i] = (real)((double)wl_u(&r) + 0.1);
        b.mass[n + i] = (real)(i % 5);
    }
    for (i = 40; i < n; i += 41) memcpy(&b.pos[2 * i], &b.pos[2 * i - 80], 2 * sizeof(real));
    return b;
}

static void free_bodies(bodies *b)
{
    free(b->pos);
    free(b->mass);
}

/* Accelerations, then potentials if these are asked for: 3 n numbers. The same of two sets of
   masses: 6 n. */
static void fields(const bodies *b, const nbody_desc *d, int potentials, real *field)
{
    nbody sim = {0};
    real *sets = field + 3 * b->n;
    memset(field, 0, 9 * (size_t)b->n * sizeof *field);
    if (potentials)
        CHECK_RESULT(nbody_fields(&sim, d, b->pos, 0, b->mass, b->n, field, field + 2 * b->n),
                     NBODY_OK);
    else
        CHECK_RESULT(nbody_accelerations(&sim, d, b->pos, 0, b->mass, b->n, field), NBODY_OK);
    CHECK_RESULT(nbody_fields_sets(&sim, 2, b->mass, sets, potentials ? sets + 4 * b->n : NULL),
                 NBODY_OK);
    CHECK(same(field, sets, 2 * (size_t)b->n * sizeof *field));
    nbody_free(&sim);
}

static nbody_desc now;
static int32_t now_n;

static void describe_now(void)
{
    print_error("method %d law %d core %d order %d sources %d softening %g n %d\n", (int)now.method,
                (int)now.law, (int)now.core, (int)now.order, (int)now.sources,
                (double)now.softening, (int)now_n);
}

/* The three ways, with and without potentials. */
static void check_same(const bodies *b, const nbody_desc *d)
{
    size_t const count = 9 * (size_t)b->n;
    real *plain = NEW(real, count), *wide = NEW(real, count), *one = NEW(real, count);
    nbody_desc stepped = *d;
    int potentials;
    now = *d;
    now_n = b->n;
    stepped.stage = NBODY_ONE_THREAD;
    for (potentials = 0; potentials < 2; potentials++) {
        answer = 0;
        fields(b, d, potentials, plain);
        answer = 1;
        asked = 0;
        fields(b, d, potentials, wide);
        CHECK(asked > 0);
        CHECK(same(plain, wide, count * sizeof *plain));
        fields(b, &stepped, potentials, one);
        CHECK(same(plain, one, count * sizeof *plain));
    }
    free(plain);
    free(wide);
    free(one);
}

static void check_softenings(const bodies *b, nbody_desc d)
{
    d.softening = 0;
    check_same(b, &d);
    d.softening = (real)0.003;
    check_same(b, &d);
}

static void check_methods(const bodies *b, nbody_law law, nbody_core core)
{
    static const int orders[] = {1, 4, NBODY_MAX_ORDER};
    nbody_desc d;
    int k;
    memset(&d, 0, sizeof d);
    d.law = law;
    d.core = core;
    d.method = NBODY_DIRECT;
    check_softenings(b, d);
    d.method = NBODY_VIRTUAL_PARTICLES;
    for (d.order = 1; d.order <= 2; d.order++) check_softenings(b, d);
    d.method = NBODY_FORCE_NODES;
    for (k = 0; k < COUNT_OF(orders); k++) {
        d.order = orders[k];
        d.sources = NBODY_SOURCES_AUTO;
        check_softenings(b, d);
        d.sources = NBODY_MASS_CENTRES;
        check_same(b, &d);
    }
}

static void test_same_bits(void **state)
{
#ifdef NBODY_I_AVX2
    static const int32_t sizes[] = {17, 120, 1, 15, 16, 1000};
    int const count = small_run() ? 2 : COUNT_OF(sizes);
    int k;
    (void)state;
    if (!wide_is_there()) skip();
    describe = describe_now;
    for (k = 0; k < count; k++) {
        bodies b = new_bodies(sizes[k], k % 2 ? 1 : 5e6);
        check_methods(&b, NBODY_INVERSE_SQUARE, NBODY_PLUMMER);
        check_methods(&b, NBODY_INVERSE, NBODY_PLUMMER);
        check_methods(&b, NBODY_VORTEX, NBODY_GAUSSIAN);
        free_bodies(&b);
    }
#else
    (void)state;
    (void)check_methods;
    skip();
#endif
}

/* ---- functions that the file names ---- */

static double user_length = 0.01;

static nbody_desc desc_of_law(nbody_method method, int order)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    d.law = NBODY_FUNCTION;
    d.method = method;
    d.order = order;
    d.function.force = force;
    d.function.potential = potential;
    d.function.user = &user_length;
    return d;
}

static nbody_desc by_pointer(nbody_desc d)
{
    d.function.force = called_force;
    d.function.potential = called_potential;
    return d;
}

/* Plain, wide, in tasks and one by one: the bits of calls by pointer. */
static void check_law(const bodies *b, nbody_desc d)
{
    size_t const count = 9 * (size_t)b->n, bytes = count * sizeof(real);
    real *want = NEW(real, count), *got = NEW(real, count);
    nbody_desc const pointer = by_pointer(d);
    int way, potentials;
    now = d;
    now_n = b->n;
    for (potentials = 0; potentials < 2; potentials++) {
        calls = 0;
        fields(b, &pointer, potentials, want);
        CHECK(calls > 0 || b->n == 1);
        CHECK(calls_with_0 == 0);
        for (way = 0; way < 4; way++) {
            nbody_desc named = d;
            answer = way == 1 && wide_is_there();
            if (way == 2) {
                named.parallel.run = parallel_backward;
                named.parallel.tasks = 7;
            }
            if (way == 3) named.stage = NBODY_ONE_THREAD;
            calls = 0;
            fields(b, &named, potentials, got);
            CHECK(calls == 0);
            CHECK(same(want, got, bytes));
        }
    }
    free(want);
    free(got);
}

static void test_named_law(void **state)
{
    static const int32_t sizes[] = {17, 120, 1, 4, 16, 250};
    static const struct { nbody_method method; int order; nbody_sources sources; } kinds[] = {
        {NBODY_DIRECT, 0, NBODY_SOURCES_AUTO}, {NBODY_VIRTUAL_PARTICLES, 1, NBODY_SOURCES_AUTO},
        {NBODY_FORCE_NODES, 1, NBODY_SOURCES_AUTO}, {NBODY_FORCE_NODES, 3, NBODY_CHEBYSHEV},
        {NBODY_FORCE_NODES, 4, NBODY_MASS_CENTRES}};
    int const count = small_run() ? 3 : COUNT_OF(sizes);
    int k, m;
    (void)state;
    describe = describe_now;
    for (k = 0; k < count; k++) {
        bodies b = new_bodies(sizes[k], k % 2 ? 1 : 5e6);
        user_length = k % 2 ? 0.01 : 1e11;
        for (m = 0; m < COUNT_OF(kinds); m++) {
            nbody_desc d = desc_of_law(kinds[m].method, kinds[m].order);
            d.sources = kinds[m].sources;
            if (m > 0) d.leaf = 10;
            d.softening = 0;
            check_law(&b, d);
            d.softening = (real)(k % 2 ? 0.003 : 2e4);
            check_law(&b, d);
        }
        free_bodies(&b);
    }
}

/* Bodies at one point: the functions are not called with 0, where this one divides by it. */
static void test_named_law_at_one_point(void **state)
{
    bodies b = new_bodies(9, 1);
    nbody_desc d = desc_of_law(NBODY_DIRECT, 0);
    real field[9 * 9];
    int i;
    (void)state;
    user_length = 0;    /* 1 / d^3: infinite at 0 */
    for (i = 1; i < 9; i++) memcpy(&b.pos[2 * i], b.pos, 2 * sizeof(real));
    b.pos[16] = (real)0.25;
    check_law(&b, d);
    feclearexcept(FE_DIVBYZERO);
    for (answer = 0; answer <= wide_is_there(); answer++) fields(&b, &d, 1, field);
    CHECK(!fetestexcept(FE_DIVBYZERO));
    d.softening = (real)0.01;
    check_law(&b, d);
    free_bodies(&b);
    user_length = 0.01;
}

/* Only the functions that are named, and both where both are used: else by pointer. The loops in
   lanes ask for the instructions, calls by pointer do not. */
static void test_law_by_pointer(void **state)
{
#ifdef NBODY_I_AVX2
    enum { N = 20 };
    bodies b = new_bodies(N, 1);
    real acc[2 * N], phi[N];
    int which;
    (void)state;
    answer = 0;
    for (which = 0; which < 4; which++) {
        nbody_desc d = desc_of_law(NBODY_DIRECT, 0);
        int potentials;
        if (which & 1) d.function.force = called_force;
        if (which & 2) d.function.potential = called_potential;
        for (potentials = 0; potentials < 2; potentials++) {
            int const named = which == 0 || (which == 2 && !potentials);
            nbody sim = {0};
            asked = calls = 0;
            CHECK_RESULT(nbody_fields(&sim, &d, b.pos, 0, b.mass, N, acc,
                potentials ? phi : NULL), NBODY_OK);
            CHECK(named == (asked > 0));
            CHECK((calls > 0) == ((which & 1) || ((which & 2) && potentials)));
            nbody_free(&sim);
        }
    }
    free_bodies(&b);
#else
    (void)state;
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_named_law),
                                       cmocka_unit_test(test_named_law_at_one_point),
                                       cmocka_unit_test(test_law_by_pointer)};
    parallel_all_used();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
