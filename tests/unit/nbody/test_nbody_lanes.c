/* test_nbody_lanes.c - instructions chosen at run time: AVX2 and plain ones give the same bits, and
   those of NBODY_ONE_THREAD.
   SPDX-License-Identifier: MIT OR Unlicense */

static int asked, answer; /* by the header, and to it */
#define NBODY_I_HAS_AVX2() (asked++, answer)

#define NBODY_STATIC
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

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
    if (!__builtin_cpu_supports("avx2")) skip();
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
    (void)new_bodies;
    (void)free_bodies;
    (void)check_methods;
    (void)describe_now;
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
