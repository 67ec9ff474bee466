/* test_nbody_calls.c - tests of the serial part of nbody.h: refusals, defaults, memory, strides. See nbody_oracle.h, and
   test_nbody.c for numbers and trees.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/nbody/test_nbody_calls.c -o test_nbody_calls -lcmocka -lm && ./test_nbody_calls
       (add -DNBODY_REAL=double for the double build; package: libcmocka-dev)

   Environment: as in test_nbody.c. */

#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nbody_oracle.h"
#include "../../common/testing.h"

/* Four bodies, on two places of the x axis and two of the y axis. */
static const real four[8] = {-1, 0, 1, 0, 0, 2, 0, -2};
static const real masses[4] = {1, 2, 3, 4};

static nbody_desc empty_desc(void)
{
    nbody_desc d;
    memset(&d, 0, sizeof d);
    return d;
}

/* Each method with what it keeps in memory: a tree over few bodies. */
enum { KIND_DIRECT, KIND_VP, KIND_VP_MOMENTS, KIND_FN8, KIND_FN4C, KIND_C4, KINDS };

static nbody_desc desc_of(int kind)
{
    nbody_desc d = empty_desc();
    d.method = kind == KIND_DIRECT ? NBODY_DIRECT : kind <= KIND_VP_MOMENTS ? NBODY_VIRTUAL_PARTICLES : NBODY_FORCE_NODES;
    d.order = kind == KIND_DIRECT ? 0 : kind == KIND_VP_MOMENTS ? 2 : kind == KIND_VP || kind == KIND_FN8 ? 1 : 4;
    d.sources = kind == KIND_FN4C ? NBODY_MASS_CENTRES : NBODY_SOURCES_AUTO;
    d.leaf = 2;
    return d;
}

/* Bodies all over the unit square, as many as asked for. */
static oracle_scene scene_of(int32_t n)
{
    oracle_scene s;
    oracle_make(&s, ORACLE_MASSES, n, 1, &dice);
    return s;
}

/* ------------------------------------------------------------------------------------------------
   Refusals
   ------------------------------------------------------------------------------------------------ */

typedef struct refusal { nbody_result want; void (*spoil)(nbody_desc *); } refusal;

#define SPOIL(name, statement) static void name(nbody_desc *d) { statement; }
SPOIL(method_4, d->method = (nbody_method)4)
SPOIL(method_negative, d->method = (nbody_method)-1)
SPOIL(law_2, d->law = (nbody_law)2)
SPOIL(law_negative, d->law = (nbody_law)-1)
SPOIL(sources_3, d->sources = (nbody_sources)3)
SPOIL(sources_negative, d->sources = (nbody_sources)-1)
SPOIL(stage_4, d->stage = (nbody_stage)4)
SPOIL(stage_negative, d->stage = (nbody_stage)-1)
SPOIL(order_negative, d->order = -1)
SPOIL(order_13, d->method = NBODY_FORCE_NODES; d->order = NBODY_MAX_ORDER + 1)
SPOIL(order_of_vp, d->method = NBODY_VIRTUAL_PARTICLES; d->order = 3)
SPOIL(points_of_vp, d->method = NBODY_VIRTUAL_PARTICLES; d->order = 1; d->sources = NBODY_CHEBYSHEV)
SPOIL(points_of_even_nodes, d->method = NBODY_FORCE_NODES; d->order = 1; d->sources = NBODY_CHEBYSHEV)
SPOIL(subcells_1, d->subcells = 1)
SPOIL(subcells_3, d->subcells = 3)
SPOIL(subcells_16, d->subcells = 16)
SPOIL(subcells_negative, d->subcells = -8)
SPOIL(levels_negative, d->levels = -1)
SPOIL(levels_18, d->levels = NBODY_MAX_LEVELS + 1)
SPOIL(leaf_negative, d->leaf = -1)
SPOIL(max_cells_negative, d->max_cells = -1)
SPOIL(gravity_nan, d->gravity = REAL_NAN)
SPOIL(gravity_infinite, d->gravity = REAL_INFINITY)
SPOIL(softening_negative, d->softening = (real)-0.1)
SPOIL(softening_nan, d->softening = REAL_NAN)
SPOIL(softening_infinite, d->softening = REAL_INFINITY)
SPOIL(min_x_nan, d->min[0] = REAL_NAN)
SPOIL(min_y_infinite, d->min[1] = -REAL_INFINITY)
SPOIL(size_negative, d->size = -1)
SPOIL(size_nan, d->size = REAL_NAN)
SPOIL(size_infinite, d->size = REAL_INFINITY)
SPOIL(mass_stride_odd, d->mass_stride = sizeof(real) + 1)
SPOIL(mass_stride_short, d->mass_stride = 1)
SPOIL(acc_stride_odd, d->acc_stride = 2 * sizeof(real) + 1)
SPOIL(acc_stride_short, d->acc_stride = sizeof(real))
SPOIL(alloc_alone, d->allocator.free = NULL; d->allocator.alloc = heap_alloc)
SPOIL(free_alone, d->allocator.alloc = NULL; d->allocator.free = heap_free)
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc = (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(cuda_free_alone, d->cuda_allocator.free = (void (*)(void *, size_t, struct CUstream_st *, void *))(size_t)1)

static const refusal refusals[] = {
    {NBODY_BAD_OPTION, method_4}, {NBODY_BAD_OPTION, method_negative}, {NBODY_BAD_OPTION, law_2}, {NBODY_BAD_OPTION, law_negative},
    {NBODY_BAD_OPTION, sources_3}, {NBODY_BAD_OPTION, sources_negative}, {NBODY_BAD_OPTION, stage_4},
    {NBODY_BAD_OPTION, stage_negative}, {NBODY_BAD_OPTION, order_negative}, {NBODY_BAD_OPTION, order_13},
    {NBODY_BAD_OPTION, order_of_vp}, {NBODY_BAD_OPTION, points_of_vp}, {NBODY_BAD_OPTION, points_of_even_nodes},
    {NBODY_BAD_OPTION, subcells_1}, {NBODY_BAD_OPTION, subcells_3}, {NBODY_BAD_OPTION, subcells_16},
    {NBODY_BAD_OPTION, subcells_negative}, {NBODY_BAD_LEVELS, levels_negative}, {NBODY_BAD_LEVELS, levels_18},
    {NBODY_BAD_LEVELS, leaf_negative}, {NBODY_BAD_LEVELS, max_cells_negative}, {NBODY_BAD_NUMBER, gravity_nan},
    {NBODY_BAD_NUMBER, gravity_infinite}, {NBODY_BAD_NUMBER, softening_negative}, {NBODY_BAD_NUMBER, softening_nan},
    {NBODY_BAD_NUMBER, softening_infinite}, {NBODY_BAD_SQUARE, min_x_nan}, {NBODY_BAD_SQUARE, min_y_infinite},
    {NBODY_BAD_SQUARE, size_negative}, {NBODY_BAD_SQUARE, size_nan}, {NBODY_BAD_SQUARE, size_infinite},
    {NBODY_BAD_ARGUMENT, mass_stride_odd}, {NBODY_BAD_ARGUMENT, mass_stride_short}, {NBODY_BAD_ARGUMENT, acc_stride_odd},
    {NBODY_BAD_ARGUMENT, acc_stride_short}, {NBODY_BAD_ALLOCATOR, alloc_alone}, {NBODY_BAD_ALLOCATOR, free_alone},
    {NBODY_BAD_ALLOCATOR, cuda_alloc_alone}, {NBODY_BAD_ALLOCATOR, cuda_free_alone},
};

/* What outputs are filled with before a call that must not touch them. */
static real untouched[16];

static real *fill(real *out)
{
    int k;
    for (k = 0; k < COUNT_OF(untouched); k++) out[k] = untouched[k] = (real)(77 + k);
    return out;
}

/* After a refusal: nothing is built, nothing was written, and it works again. */
static void check_empty(nbody *sim, const nbody_desc *good, const real *acc, const real *potential)
{
    nbody_counts counts;
    nbody_error error;
    real again[16];
    CHECK(sim->n == 0 && sim->frame == NULL && sim->cell == NULL && sim->id == NULL && sim->x == NULL && sim->vm == NULL);
    CHECK(sim->made == NULL && sim->fx == NULL && sim->fp == NULL && sim->table == NULL && sim->vxx == NULL);
    CHECK(same(acc, untouched, sizeof untouched) && same(potential, untouched, sizeof untouched));
    CHECK_RESULT(nbody_validate(sim), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_count(sim, &counts), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_estimate(sim, acc, 1, 0, &error), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_fields_at(sim, four, 0, 4, again, NULL, NULL), NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_accelerations(sim, good, four, 0, masses, 4, again), NBODY_OK);
    CHECK(sim->bad_id == -1 && sim->n == 4);
    CHECK_RESULT(nbody_validate(sim), NBODY_OK);
}

/* Each wrong desc, on an nbody that holds something, by every function that takes one. */
static void test_bad_descs(void **state)
{
    int k, kind;
    (void)state;
    for (k = 0; k < COUNT_OF(refusals); k++) for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0};
        nbody_desc const good = desc_of(kind);
        nbody_desc d = good, out;
        real acc[16], potential[16], vel[8] = {0}, pos[8], own[8];
        nbody_bodies b = {pos, vel, own, NULL, 4, 0};
        memcpy(pos, four, sizeof pos);
        refusals[k].spoil(&d);
        (void)fill(potential);
        CHECK_RESULT(nbody_defaults(&out, &d, 4), refusals[k].want);
        CHECK(nbody_levels_for(&d, 100000) == 1);
        CHECK_RESULT(nbody_accelerations(&sim, &good, four, 0, NULL, 4, acc), NBODY_OK);
        CHECK_RESULT(nbody_accelerations(&sim, &d, four, 0, NULL, 4, fill(acc)), refusals[k].want);
        check_empty(&sim, &good, acc, potential);
        CHECK_RESULT(nbody_fields(&sim, &d, four, 0, NULL, 4, acc, potential), refusals[k].want);
        check_empty(&sim, &good, acc, potential);
        CHECK_RESULT(nbody_build(&sim, &d, four, 0, NULL, 4), refusals[k].want);
        check_empty(&sim, &good, acc, potential);
        CHECK_RESULT(nbody_reserve(&sim, &d, 4), refusals[k].want);
        check_empty(&sim, &good, acc, potential);
        if (refusals[k].want != NBODY_BAD_ARGUMENT) { /* a step has no strides */
            CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), refusals[k].want);
            CHECK(same(pos, four, sizeof pos) && vel[0] == 0 && b.fresh == 0);
        }
        nbody_free(&sim);
    }
}

/* NaN and Inf in positions and masses, negative masses: the first one is named. */
static void test_bad_bodies(void **state)
{
    static const real bad[] = {NAN, INFINITY, -INFINITY, -1};
    int k, what, kind;
    int32_t i;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (k = 0; k < COUNT_OF(bad); k++) for (i = 0; i < 4; i++)
        for (what = 0; what < 3; what++) {
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        real pos[8], mass[4], acc[16], potential[16];
        int const fine = k == 3 && (what < 2 || kind == KIND_DIRECT || kind == KIND_C4);
        nbody_result const want = fine ? NBODY_OK : k < 3 || i == 3 ? NBODY_NOT_FINITE : NBODY_BAD_MASS;
        memcpy(pos, four, sizeof pos);
        memcpy(mass, masses, sizeof mass);
        if (what < 2) pos[2 * i + what] = bad[k];
        else mass[i] = bad[k];
        if (what < 2 && i < 3 && k < 3) mass[3] = -1; /* comes later */
        if (!fine && what == 2) mass[3] = REAL_NAN;
        (void)fill(potential);
        CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, mass, 4, fill(acc), potential), want);
        CHECK(sim.bad_id == (fine ? -1 : i));
        if (!fine) check_empty(&sim, &d, acc, potential);
        nbody_free(&sim);
    }
}

static void test_bad_calls(void **state)
{
    size_t const one = sizeof(real);
    int32_t const too_many = 0x40000000 - 511;
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        nbody_desc out;
        nbody_error error, error_was;
        nbody_counts counts;
        nbody_energies energies;
        real acc[16], potential[16], pos[8], vel[8] = {0}, own[8] = {0}, nowhere[4] = {0, 0, REAL_NAN, 0};
        nbody_bodies b = {pos, vel, own, NULL, 4, 0};
        int32_t bad = 5;
        (void)fill(acc);
        (void)fill(potential);
        memcpy(pos, four, sizeof pos);
        CHECK_RESULT(nbody_defaults(NULL, &d, 4), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_defaults(&out, &d, 0), NBODY_OK);
#define REFUSED(call, result) do { \
            CHECK_RESULT(nbody_build(&sim, &d, four, 0, masses, 4), NBODY_OK); \
            CHECK_RESULT(call, result); \
            check_empty(&sim, &d, acc, potential); \
        } while (0)
        CHECK_RESULT(nbody_build(NULL, &d, four, 0, masses, 4), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_build(&sim, &d, NULL, 0, masses, 4), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_build(&sim, &d, four, 0, masses, -1), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_build(&sim, &d, four, one, masses, 4), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_build(&sim, &d, four, 2 * one + 1, masses, 4), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_build(&sim, &d, four, 0, masses, too_many), NBODY_TOO_MANY);
        CHECK_RESULT(nbody_accelerations(NULL, &d, four, 0, masses, 4, acc), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_accelerations(&sim, &d, NULL, 0, masses, 4, acc), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_accelerations(&sim, &d, four, 0, masses, 4, NULL), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_accelerations(&sim, &d, four, 0, masses, -4, acc), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_accelerations(&sim, &d, four, 1, masses, 4, acc), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_accelerations(&sim, &d, four, 0, masses, too_many, acc), NBODY_TOO_MANY);
        CHECK_RESULT(nbody_fields(NULL, &d, four, 0, masses, 4, acc, potential), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, NULL, 0, masses, 4, acc, potential), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, four, 3, masses, 4, acc, potential), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, four, 0, masses, INT32_MIN, acc, potential), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, four, 0, masses, INT32_MAX, acc, potential), NBODY_TOO_MANY);
        CHECK_RESULT(nbody_reserve(NULL, &d, 4), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_reserve(&sim, &d, -1), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_reserve(&sim, &d, too_many), NBODY_TOO_MANY);

        /* What only reads leaves the tree alone, and its outputs. */
        CHECK_RESULT(nbody_build(&sim, &d, four, 0, masses, 4), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(NULL, four, 0, 4, acc, potential, &bad), NBODY_BAD_ARGUMENT);
        CHECK(bad == -1);
        CHECK_RESULT(nbody_fields_at(&sim, NULL, 0, 4, acc, potential, &bad), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, -1, acc, potential, &bad), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_fields_at(&sim, four, one, 4, acc, potential, &bad), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, too_many, acc, potential, &bad), NBODY_TOO_MANY);
        CHECK_RESULT(nbody_fields_at(&sim, nowhere, 0, 2, acc, potential, &bad), NBODY_NOT_FINITE);
        CHECK(bad == 1);
        nowhere[1] = REAL_INFINITY;
        CHECK_RESULT(nbody_fields_at(&sim, nowhere, 0, 2, acc, potential, &bad), NBODY_NOT_FINITE);
        CHECK(bad == 0);
        CHECK_RESULT(nbody_fields_at(&sim, nowhere, 0, 2, acc, potential, NULL), NBODY_NOT_FINITE);
        CHECK_RESULT(nbody_fields_at(&sim, NULL, 0, 0, NULL, NULL, NULL), NBODY_OK);
        CHECK(same(acc, untouched, sizeof acc) && same(potential, untouched, sizeof potential));
        memset(&error, 7, sizeof error);
        error_was = error;
        CHECK_RESULT(nbody_estimate(NULL, acc, 4, 0, &error), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_estimate(&sim, NULL, 4, 0, &error), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_estimate(&sim, acc, -1, 0, &error), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_estimate(&sim, acc, 4, 0, NULL), NBODY_BAD_ARGUMENT);
        CHECK(same(&error, &error_was, sizeof error));
        CHECK_RESULT(nbody_estimate(&sim, NULL, 0, 0, &error), NBODY_OK);
        CHECK(error.samples == 0 && error.mean == 0 && error.worst == 0);
        CHECK_RESULT(nbody_count(NULL, &counts), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_count(&sim, NULL), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_validate(NULL), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);

        CHECK_RESULT(nbody_step(NULL, &d, &b, 1, NBODY_LEAPFROG), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_step(&sim, &d, NULL, 1, NBODY_LEAPFROG), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_step(&sim, &d, &b, REAL_NAN, NBODY_LEAPFROG), NBODY_BAD_NUMBER);
        CHECK_RESULT(nbody_step(&sim, &d, &b, REAL_INFINITY, NBODY_EULER), NBODY_BAD_NUMBER);
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, (nbody_integrator)2), NBODY_BAD_OPTION);
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, (nbody_integrator)-1), NBODY_BAD_OPTION);
        b.n = -1;
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_energy(&b, NULL, &energies), NBODY_BAD_ARGUMENT);
        b.n = too_many;
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_TOO_MANY);
        CHECK_RESULT(nbody_energy(&b, NULL, &energies), NBODY_TOO_MANY);
        b.n = 4;
        b.pos = NULL;
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_energy(&b, NULL, &energies), NBODY_BAD_ARGUMENT);
        b.pos = pos;
        b.vel = NULL;
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_energy(&b, NULL, &energies), NBODY_BAD_ARGUMENT);
        b.vel = vel;
        b.acc = NULL;
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_energy(NULL, NULL, &energies), NBODY_BAD_ARGUMENT);
        CHECK_RESULT(nbody_energy(&b, NULL, NULL), NBODY_BAD_ARGUMENT);
        CHECK(same(pos, four, sizeof pos) && vel[7] == 0 && own[7] == 0 && b.fresh == 0);
        nbody_free(&sim);
    }
}

/* A square that no number can measure. Floats have none: it is measured in double. */
static void test_too_large(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        real pos[8], acc[16], potential[16];
        int i;
        (void)fill(potential);
        memcpy(pos, four, sizeof pos);
        pos[0] = -REAL_LARGEST;
        pos[2] = REAL_LARGEST;
        if (!IS_FLOAT) {
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, masses, 4, fill(acc), potential), NBODY_TOO_LARGE);
            check_empty(&sim, &d, acc, potential);
        } else {
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, masses, 4, acc, potential), NBODY_OK);
            for (i = 0; i < 8; i++) CHECK(acc[i] - acc[i] == 0);
            CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        }
        nbody_free(&sim);
    }
}

/* A step that fails: in the first forces nothing has moved; for the new positions, the bodies have drifted. */
static void test_failing_step(void **state)
{
    real pos[4] = {0, 0, 1, 0}, vel[4] = {0, 0, 0, 0}, acc[4];
    nbody_bodies b = {pos, vel, acc, NULL, 2, 0};
    nbody sim = {0};
    nbody_desc d = empty_desc();
    (void)state;
    pos[1] = REAL_NAN;
    CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_LEAPFROG), NBODY_NOT_FINITE);
    CHECK(sim.bad_id == 0 && pos[0] == 0 && pos[2] == 1 && vel[0] == 0 && b.fresh == 0);
    CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_NOT_FINITE);
    CHECK(pos[2] == 1 && vel[2] == 0 && b.fresh == 0);
    pos[1] = 0;
    vel[3] = REAL_LARGEST;
    CHECK_RESULT(nbody_step(&sim, &d, &b, 4, NBODY_LEAPFROG), NBODY_NOT_FINITE);
    CHECK(sim.bad_id == 1 && pos[3] - pos[3] != 0 && vel[0] == 2 && pos[0] == 8 && b.fresh == 0 && sim.n == 0);
    nbody_free(&sim);
}

/* ------------------------------------------------------------------------------------------------
   Texts, defaults, levels
   ------------------------------------------------------------------------------------------------ */

/* Every call that reads a tree gives this result where there is none, or one of no bodies. */
static void check_holds_nothing(const nbody *sim, nbody_result want)
{
    nbody_counts counts;
    nbody_error error;
    real acc[2] = {5, 5}, potential = 5;
    CHECK(sim->n == 0);
    CHECK_RESULT(nbody_validate(sim), want);
    CHECK_RESULT(nbody_verify(sim, acc, 1, 0, 1), want);
    CHECK_RESULT(nbody_estimate(sim, acc, 1, 0, &error), want);
    CHECK_RESULT(nbody_count(sim, &counts), want);
    CHECK_RESULT(nbody_fields_at(sim, four, 0, 1, acc, &potential, NULL), want);
    CHECK(acc[0] == (want == NBODY_OK ? 0 : 5) && potential == acc[0]);
}

/* One rule: without a tree every call says so; a tree over no bodies is one. */
static void test_not_built(void **state)
{
    real const bad[2] = {0, REAL_NAN};
    nbody sim = {0};
    (void)state;
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_build(&sim, NULL, NULL, 0, NULL, 0), NBODY_OK);
    check_holds_nothing(&sim, NBODY_OK);
    CHECK_RESULT(nbody_reserve(&sim, NULL, 4), NBODY_OK);
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_build(&sim, NULL, four, 0, NULL, 4), NBODY_OK);
    CHECK_RESULT(nbody_build(&sim, NULL, bad, 0, NULL, 1), NBODY_NOT_FINITE);
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
    CHECK_RESULT(nbody_build(&sim, &sim.desc, four, 0, NULL, 4), NBODY_OK); /* its own desc is one as good as any */
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    nbody_free(&sim);
    check_holds_nothing(&sim, NBODY_NOT_BUILT);
}

/* A point that is none is refused by a tree of nothing as by a full one. */
static void test_points_without_numbers(void **state)
{
    real const bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    int kind, full, b, a;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (full = 0; full < 2; full++) for (b = 0; b < 3; b++) for (a = 0; a < 2; a++) {
        nbody_desc const d = desc_of(kind);
        nbody sim = {0};
        real points[4] = {0, 0, 0, 0}, acc[4] = {5, 5, 5, 5};
        int32_t bad_id = 7;
        points[2 + a] = bad[b];
        CHECK_RESULT(nbody_build(&sim, &d, four, 0, masses, full ? 4 : 0), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, points, 0, 2, acc, NULL, &bad_id), NBODY_NOT_FINITE);
        CHECK(bad_id == 1 && acc[0] == 5);
        nbody_free(&sim);
    }
}

/* Every result has a text of its own that begins with its name, and names what to change. */
static void test_texts(void **state)
{
    static const struct { nbody_result r; const char *word; } texts[] = {
        {NBODY_OK, "well"}, {NBODY_BAD_ARGUMENT, "stride"}, {NBODY_BAD_OPTION, "desc.order"}, {NBODY_BAD_LEVELS, "desc.levels"},
        {NBODY_BAD_NUMBER, "desc.softening"}, {NBODY_BAD_SQUARE, "desc.size"}, {NBODY_BAD_ALLOCATOR, "desc.allocator"},
        {NBODY_NOT_FINITE, "sim.bad_id"}, {NBODY_BAD_MASS, "sim.bad_id"}, {NBODY_TOO_LARGE, "scale"}, {NBODY_TOO_MANY, "2^30"},
        {NBODY_OUT_OF_MEMORY, "desc.allocator"}, {NBODY_NOT_BUILT, "nbody_build"}, {NBODY_CELLS_FULL, "desc.max_cells"},
        {NBODY_INVALID, "damaged"}, {NBODY_CUDA_ERROR, "cuda_error"},
    };
#define NAME_OF(code, text) #code ": ",
    static const char *const names[] = {NBODY_RESULTS(NAME_OF)};
    int k, other;
    (void)state;
    CHECK(COUNT_OF(texts) == NBODY_RESULT_COUNT);
    for (k = 0; k < COUNT_OF(texts); k++) {
        const char *text = nbody_result_text(texts[k].r);
        CHECK((int)texts[k].r == k && strstr(text, texts[k].word) != NULL);
        CHECK(strncmp(text, names[k], strlen(names[k])) == 0);
        for (other = 0; other < k; other++) CHECK(strcmp(text, nbody_result_text((nbody_result)other)) != 0);
    }
    CHECK(strstr(nbody_result_text(NBODY_BAD_ARGUMENT), "bytes") != NULL && "a stride may have been a count of numbers");
    CHECK(strstr(nbody_result_text(NBODY_TOO_LARGE), "largest") != NULL && strstr(nbody_result_text(NBODY_NOT_FINITE), "point") != NULL);
    CHECK(*nbody_result_text((nbody_result)-1) && *nbody_result_text(NBODY_RESULT_COUNT) && *nbody_result_text((nbody_result)1000));
    CHECK(nbody_version() == 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH && nbody_version() > 0);
}

static void test_defaults(void **state)
{
    nbody_desc d = empty_desc(), out;
    int order;
    (void)state;
    CHECK_RESULT(nbody_defaults(&out, NULL, 4), NBODY_OK);
    CHECK(out.method == NBODY_DIRECT && out.law == NBODY_INVERSE_SQUARE && out.gravity == 1 && out.softening == 0 && out.size == 0);
    CHECK(out.mass_stride == sizeof(real) && out.acc_stride == 2 * sizeof(real) && out.stage == NBODY_FAST);
    CHECK(out.allocator.alloc == NULL && out.allocator.free == NULL);
    CHECK_RESULT(nbody_defaults(&out, &d, 1000000), NBODY_OK);
    CHECK(out.method == NBODY_FORCE_NODES && out.order == 4 && out.sources == NBODY_CHEBYSHEV && out.leaf > 0);
    CHECK(out.levels > 1 && out.levels <= NBODY_MAX_LEVELS);
    for (order = 1; order <= NBODY_MAX_ORDER; order++) {
        d.method = NBODY_FORCE_NODES;
        d.order = order;
        CHECK_RESULT(nbody_defaults(&out, &d, 100), NBODY_OK);
        CHECK(out.order == order && out.method == NBODY_FORCE_NODES && out.subcells == 8);
        CHECK(out.sources == (order == 1 ? NBODY_MASS_CENTRES : NBODY_CHEBYSHEV));
    }
    for (order = 1; order <= NBODY_MAX_ORDER; order++) { /* the leaves that were measured best: the bench's group `leaf` */
        d.order = order;
        CHECK_RESULT(nbody_defaults(&out, &d, 100), NBODY_OK);
        CHECK(out.leaf == (order == 1 ? 128 : order <= 4 ? 80 : order <= 6 ? 144 : 160));
        d.sources = NBODY_MASS_CENTRES;
        CHECK_RESULT(nbody_defaults(&out, &d, 100), NBODY_OK);
        CHECK(out.leaf == (order == 1 ? 128 : 64));
        d.sources = NBODY_SOURCES_AUTO;
    }
    d = empty_desc();
    d.method = NBODY_VIRTUAL_PARTICLES;
    CHECK_RESULT(nbody_defaults(&out, &d, 10), NBODY_OK);
    CHECK(out.leaf == 128);
    CHECK(out.order == 1 && out.sources == NBODY_MASS_CENTRES && out.subcells == 8);
    d.levels = 5;
    d.order = 2;
    d.subcells = 4;
    d.gravity = -2;
    d.softening = 3;
    CHECK_RESULT(nbody_defaults(&out, &d, 10), NBODY_OK);
    CHECK(out.levels == 5 && out.leaf == 0 && out.order == 2 && out.subcells == 4 && out.gravity == -2 && out.softening == 3);
    d.leaf = 9;
    CHECK_RESULT(nbody_defaults(&out, &d, 10), NBODY_OK);
    CHECK(out.levels == 5 && out.leaf == 9);
    CHECK_RESULT(nbody_defaults(&d, &d, 10), NBODY_OK); /* in place, and again: it stays */
    CHECK(same(&d, &out, sizeof d));
}

/* Few bodies: the direct sum; many: not. sim.desc says which. */
static void test_automatic_method(void **state)
{
    oracle_scene s = scene_of(3000);
    nbody sim = {0};
    nbody_desc d = empty_desc();
    (void)state;
    CHECK_RESULT(nbody_build(&sim, NULL, s.pos, 0, NULL, 10), NBODY_OK);
    CHECK(sim.desc.method == NBODY_DIRECT && sim.cell == NULL);
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
    CHECK(sim.desc.method == NBODY_FORCE_NODES && sim.cell != NULL && sim.desc.order == 4);
    d.order = 6; /* is that of the tree, should there be one */
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
    CHECK(sim.desc.order == 6 && sim.nodes == 36);
    nbody_free(&sim);
    oracle_forget(&s);
}

/* Deeper for more bodies, by a level at most, and as deep as was counted to be best (give or take one). */
static void test_levels_for(void **state)
{
    static const struct { int kind, order; int32_t n; int levels; } best[] = {
        {KIND_VP, 1, 10000, 6}, {KIND_VP, 1, 100000, 7}, {KIND_VP, 1, 1000000, 9}, {KIND_FN8, 1, 10000, 5},
        {KIND_FN8, 1, 100000, 6}, {KIND_FN8, 1, 1000000, 8}, {KIND_FN4C, 4, 10000, 5}, {KIND_FN4C, 4, 100000, 7},
        {KIND_FN4C, 4, 1000000, 8},
        {KIND_C4, 4, 100000, 7}, {KIND_C4, 8, 10000, 4}, {KIND_C4, 8, 100000, 6}, {KIND_C4, 8, 1000000, 7},
    };
    int k, kind;
    (void)state;
    CHECK(nbody_levels_for(NULL, 0) == 1 && nbody_levels_for(NULL, 1) == 1 && nbody_levels_for(NULL, 100000) >= 6);
    for (k = 0; k < COUNT_OF(best); k++) {
        nbody_desc d = desc_of(best[k].kind);
        d.order = best[k].order;
        CHECK(abs((int)nbody_levels_for(&d, best[k].n) - best[k].levels) <= 1);
    }
    for (kind = 0; kind <= KINDS; kind++) {
        nbody_desc d = kind < KINDS ? desc_of(kind) : empty_desc();
        int32_t n, before = 1;
        for (n = 0; n < 0x40000000 - 1024; n += 1 + n / 50) {
            int32_t const levels = nbody_levels_for(&d, n);
            CHECK(levels >= before && levels <= before + 1 && levels <= NBODY_MAX_LEVELS);
            before = levels;
        }
        CHECK(before >= 12);
    }
}

/* ------------------------------------------------------------------------------------------------
   Strides and pointers
   ------------------------------------------------------------------------------------------------ */

/* x, y, mass and acceleration in one record, with gaps, give what separate arrays give. */
static void test_strides(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        enum { N = 100 };
        struct record { real before, pos[2], between, mass, acc[2], after; } *records = NEW(struct record, N);
        oracle_scene s = scene_of(N);
        nbody sim = {0}, other = {0};
        nbody_desc d = desc_of(kind);
        real acc[2 * N], potential[N], second[N], points[3 * N], at[2 * N], again[2 * N];
        nbody_error e, f;
        int32_t i;
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, N, acc, potential), NBODY_OK);
        for (i = 0; i < N; i++) {
            struct record *r = &records[i];
            r->before = r->between = r->after = r->acc[0] = r->acc[1] = 99;
            memcpy(r->pos, s.pos + 2 * i, sizeof r->pos);
            r->mass = s.mass[i];
            points[3 * i] = s.pos[2 * i];
            points[3 * i + 1] = s.pos[2 * i + 1];
            points[3 * i + 2] = REAL_NAN;
        }
        d.mass_stride = d.acc_stride = sizeof *records;
        CHECK_RESULT(nbody_fields(&other, &d, records->pos, sizeof *records, &records->mass, N, records->acc, second), NBODY_OK);
        CHECK(same(potential, second, sizeof potential));
        for (i = 0; i < N; i++) {
            const struct record *r = &records[i];
            CHECK(same(r->acc, acc + 2 * i, sizeof r->acc));
            CHECK(r->before == 99 && r->between == 99 && r->after == 99);
            CHECK(r->mass == s.mass[i] && same(r->pos, s.pos + 2 * i, sizeof r->pos));
        }
        CHECK_RESULT(nbody_estimate(&sim, acc, N, 1, &e), NBODY_OK);
        CHECK_RESULT(nbody_estimate(&other, records[0].acc, N, 1, &f), NBODY_OK);
        CHECK(e.samples == f.samples && same(&e.mean, &f.mean, sizeof e.mean) && same(&e.worst, &f.worst, sizeof e.worst));
        CHECK_RESULT(nbody_fields_at(&sim, s.pos, 0, N, at, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, points, 3 * sizeof(real), N, again, NULL, NULL), NBODY_OK);
        CHECK(same(at, again, sizeof at));
        d.mass_stride = sizeof *records;
        for (i = 0; i < N; i++) s.mass[i] = 1;
        d.acc_stride = 0;
        CHECK_RESULT(nbody_fields(&other, &d, s.pos, 0, NULL, N, again, NULL), NBODY_OK); /* no mass: 1 each */
        d.mass_stride = 0;
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, N, acc, NULL), NBODY_OK);
        CHECK(same(again, acc, sizeof acc));
        nbody_free(&sim);
        nbody_free(&other);
        oracle_forget(&s);
        free(records);
    }
}

/* A step reads its bodies tightly packed, whatever the strides of the desc. */
static void test_step_ignores_strides(void **state)
{
    real pos[8], vel[8] = {0}, acc[8], other_pos[8], other_vel[8] = {0}, other_acc[8];
    nbody_bodies a = {pos, vel, acc, masses, 4, 0}, b = {other_pos, other_vel, other_acc, masses, 4, 0};
    nbody sim = {0};
    nbody_desc d = empty_desc();
    (void)state;
    memcpy(pos, four, sizeof pos);
    memcpy(other_pos, four, sizeof pos);
    CHECK_RESULT(nbody_step(&sim, &d, &a, (real)0.125, NBODY_LEAPFROG), NBODY_OK);
    d.mass_stride = d.acc_stride = 800 * sizeof(real);
    CHECK_RESULT(nbody_step(&sim, &d, &b, (real)0.125, NBODY_LEAPFROG), NBODY_OK);
    CHECK(same(pos, other_pos, sizeof pos) && same(vel, other_vel, sizeof vel) && same(acc, other_acc, sizeof acc));
    nbody_free(&sim);
}

static void test_no_bodies(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        nbody_bodies b = {NULL, NULL, NULL, NULL, 0, 0};
        nbody_energies energies;
        nbody_counts counts;
        nbody_error error;
        real acc[2] = {5, 5}, potential = 5;
        CHECK_RESULT(nbody_build(&sim, &d, NULL, 0, NULL, 0), NBODY_OK);
        CHECK_RESULT(nbody_accelerations(&sim, &d, NULL, 0, NULL, 0, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, NULL, 0, NULL, 0, NULL, NULL), NBODY_OK);
        CHECK(sim.n == 0 && sim.frame != NULL);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        CHECK_RESULT(nbody_count(&sim, &counts), NBODY_OK);
        CHECK(counts.cells == 0 && counts.near_terms == 0 && counts.leaves == 0);
        CHECK_RESULT(nbody_estimate(&sim, NULL, 10, 0, &error), NBODY_OK);
        CHECK(error.samples == 0);
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, 1, acc, &potential, NULL), NBODY_OK);
        CHECK(acc[0] == 0 && acc[1] == 0 && potential == 0);
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_LEAPFROG), NBODY_OK);
        CHECK_RESULT(nbody_step(&sim, &d, &b, 1, NBODY_EULER), NBODY_OK);
        CHECK_RESULT(nbody_energy(&b, NULL, &energies), NBODY_OK);
        CHECK_RESULT(nbody_reserve(&sim, &d, 0), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, four, 0, NULL, 4, NULL, NULL), NBODY_OK); /* nobody wants anything: the tree is built */
        CHECK(sim.n == 4);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
    }
}

/* ------------------------------------------------------------------------------------------------
   Memory
   ------------------------------------------------------------------------------------------------ */

/* Forces are the same, whatever was in the memory before: other methods, other sizes, other laws. */
static void test_reuse(void **state)
{
    nbody sim = {0};
    heap h = {0, 0, 0, 0, 0, 0};
    int step, steps = small_run() ? 20 : SANITIZED ? 60 : 120;
    int64_t most = 0;
    (void)state;
    for (step = 0; step < steps; step++) {
        int32_t const n = roll(4) ? roll(300) : roll(5);
        oracle_scene s = scene_of(n);
        nbody fresh = {0};
        nbody_desc d = desc_of(roll(KINDS));
        real *acc = NEW(real, 2 * n), *again = NEW(real, 2 * n), *potential = NEW(real, n), *other = NEW(real, n);
        int const potentials = roll(2);
        if (d.order == 4 && d.sources == NBODY_SOURCES_AUTO) d.order = 2 + roll(4);
        d.law = (nbody_law)roll(2);
        d.softening = roll(2) ? (real)0.01 : 0;
        d.levels = roll(2) ? 0 : 1 + roll(6);
        CHECK_RESULT(nbody_fields(&fresh, &d, s.pos, 0, s.mass, n, acc, potentials ? potential : NULL), NBODY_OK);
        d.allocator = allocator_of(&h);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, n, again, potentials ? other : NULL), NBODY_OK);
        CHECK(same(acc, again, 2 * (size_t)n * sizeof(real)));
        if (potentials) CHECK(same(potential, other, (size_t)n * sizeof(real)));
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        CHECK(h.live_bytes == nbody_bytes(&sim) && h.live_bytes >= most); /* it is kept */
        most = h.live_bytes;
        nbody_free(&fresh);
        oracle_forget(&s);
        free(acc);
        free(again);
        free(potential);
        free(other);
    }
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && h.calls == h.frees && !h.wrong);
    nbody_free(&sim);
    nbody_free(NULL);
    CHECK(nbody_bytes(&sim) == 0 && nbody_bytes(NULL) == 0);
}

/* Tables that are kept belong to their law, order and softening: every change of these gives what a new nbody gives. */
static void test_kept_tables(void **state)
{
    enum { N = 150, KINDS_OF_TABLES = 16 };
    oracle_scene s = scene_of(N);
    nbody sim = {0};
    int from, to, step;
    (void)state;
    for (from = 0; from < KINDS_OF_TABLES; from++) for (to = 0; to < KINDS_OF_TABLES; to++) {
        if (small_run() && (from + to) % 9) continue;
        for (step = 0; step < 2; step++) {
            int const kind = step ? to : from, potentials = kind >> 3;
            real acc[2 * N], again[2 * N], potential[N];
            nbody fresh = {0};
            nbody_desc d = desc_of(KIND_C4);
            d.order = kind & 1 ? 3 : 2;
            d.law = (nbody_law)(kind >> 1 & 1);
            d.softening = kind & 4 ? (real)0.05 : 0;
            CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, N, acc, potentials ? potential : NULL), NBODY_OK);
            if (!step) continue;
            CHECK_RESULT(nbody_fields(&fresh, &d, s.pos, 0, s.mass, N, again, potentials ? potential : NULL), NBODY_OK);
            CHECK(same(acc, again, sizeof acc));
            nbody_free(&fresh);
        }
    }
    nbody_free(&sim);
    oracle_forget(&s);
}

/* A tree of one cell has no sources: the arrays of an earlier one are not taken for its. */
static void test_no_sources(void **state)
{
    int kind;
    (void)state;
    for (kind = KIND_VP; kind <= KIND_FN4C; kind++) {
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        oracle_scene s = scene_of(100);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK(sim.vm != NULL && sim.vx != NULL && sim.vy != NULL && sim.made != NULL);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, 2), NBODY_OK);
        CHECK(sim.frame->cells == 1 && sim.block[NBODY_I_SOURCES].bytes > 0);
        CHECK(!sim.vm && !sim.vx && !sim.vy && !sim.vxx && !sim.vxy && !sim.vyy && !sim.made);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* The same bodies again take no memory. */
static void test_again_takes_no_memory(void **state)
{
    int kind, round;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0};
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s = scene_of(200);
        nbody_desc d = desc_of(kind);
        int64_t calls = 0;
        real acc[400], potential[200];
        d.allocator = allocator_of(&h);
        for (round = 0; round < 3; round++) {
            CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, acc, potential), NBODY_OK);
            CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n / 2, acc), NBODY_OK);
            CHECK(round == 0 || h.calls == calls);
            calls = h.calls;
        }
        nbody_free(&sim);
        CHECK(h.live_blocks == 0 && !h.wrong);
        oracle_forget(&s);
    }
}

/* After a reserve, evenly spread bodies take none: a lattice, and random ones. */
static void test_reserve(void **state)
{
    int kind, levels, random, size;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (levels = 0; levels < 3; levels++) for (random = 0; random < 2; random++)
        for (size = 0; size < 2; size++) {
        nbody sim = {0};
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s;
        nbody_desc d = desc_of(kind);
        int64_t calls, bytes;
        real *acc, *potential;
        if ((SANITIZED || small_run()) && size && kind > KIND_VP_MOMENTS) continue;
        oracle_make(&s, random ? ORACLE_UNIFORM : ORACLE_LATTICE, size ? SANITIZED || small_run() ? 400 : 1024 : 100, 0, &dice);
        acc = NEW(real, 2 * s.n);
        potential = NEW(real, s.n);
        d.allocator = allocator_of(&h);
        d.levels = levels == 0 ? 0 : levels == 1 ? 4 : 5;
        d.leaf = 0;
        CHECK_RESULT(nbody_reserve(&sim, &d, s.n), NBODY_OK);
        CHECK(sim.n == 0 && sim.frame == NULL && h.live_bytes == nbody_bytes(&sim) && h.calls > 0);
        CHECK_RESULT(nbody_validate(&sim), NBODY_NOT_BUILT);
        calls = h.calls;
        bytes = h.live_bytes;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, NULL, s.n, acc), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, NULL, s.n, acc, potential), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, NULL, s.n / 2, acc, potential), NBODY_OK);
        CHECK(h.calls == calls && h.live_bytes == bytes && nbody_bytes(&sim) == bytes);
        nbody_free(&sim);
        CHECK(h.live_blocks == 0 && !h.wrong);
        free(acc);
        free(potential);
        oracle_forget(&s);
    }
}

/* n rises by one with every build: what is allocated follows its logarithm. A reserve takes what it needs. */
static void test_growth(void **state)
{
    enum { MOST = 600, GROWTHS = 18 }; /* the power of 3 / 2 that is above 600, and some for the first few bodies */
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        nbody sim = {0}, first = {0};
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s = scene_of(MOST);
        nbody_desc d = desc_of(kind);
        real *acc = NEW(real, 2 * MOST), *potential = NEW(real, MOST);
        int64_t bytes;
        int32_t n;
        d.allocator = allocator_of(&h);
        for (n = 1; n <= MOST; n++) {
            if (n <= 40 || n == MOST) /* nodes and tables take longest */
                CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, n, acc, potential), NBODY_OK);
            else CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, n), NBODY_OK);
            if (n == 1) CHECK(sim.block[NBODY_I_BODIES].bytes == NBODY_I_BODY);
        }
        CHECK(h.calls <= NBODY_BLOCKS * GROWTHS);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        bytes = nbody_bytes(&sim);
        CHECK_RESULT(nbody_fields(&first, &d, s.pos, 0, s.mass, MOST, acc, potential), NBODY_OK);
        CHECK(nbody_bytes(&first) <= bytes + bytes / 2 && bytes <= 2 * nbody_bytes(&first));
        nbody_free(&sim);
        nbody_free(&first);
        for (n = 100; n <= 103; n++) {
            CHECK_RESULT(nbody_reserve(&sim, &d, n), NBODY_OK);
            CHECK(sim.block[NBODY_I_BODIES].bytes == (size_t)n * NBODY_I_BODY);
        }
        bytes = nbody_bytes(&sim);
        CHECK_RESULT(nbody_reserve(&first, &d, 103), NBODY_OK);
        CHECK(bytes == nbody_bytes(&first));
        nbody_free(&sim);
        nbody_free(&first);
        CHECK(h.live_blocks == 0 && !h.wrong);
        free(acc);
        free(potential);
        oracle_forget(&s);
    }
}

/* Everything that allocates, with the k-th allocation failing, and with `scarce` the next one, too. Returns the number of failures;
   *calls: allocations until then. */
static int memory_scenario(heap *h, const oracle_scene *s, int kind, int scarce, int64_t *calls)
{
    nbody sim = {0};
    nbody_desc d = desc_of(kind);
    real *acc = NEW(real, 2 * s->n), *potential = NEW(real, s->n), *pos = NEW(real, 2 * s->n), *vel = NEW(real, 2 * s->n);
    nbody_bodies b;
    int failures = 0, step;
    memset(&b, 0, sizeof b);
    memset(vel, 0, 2 * (size_t)s->n * sizeof *vel);
    memcpy(pos, s->pos, 2 * (size_t)s->n * sizeof *pos);
    b.pos = pos;
    b.vel = vel;
    b.acc = acc;
    b.mass = s->mass;
    b.n = s->n;
    d.allocator = allocator_of(h);
    if (scarce) d.allocator.alloc = scarce_alloc;
    for (step = 0; step < 6; step++) {
        nbody_result r = NBODY_OK;
        acc[0] = potential[0] = 42;
        switch (step) {
        case 0: r = nbody_build(&sim, &d, s->pos, 0, s->mass, s->n / 4); break;
        case 1: r = nbody_accelerations(&sim, &d, s->pos, 0, s->mass, s->n / 2, acc); break;
        case 2: r = nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n / 2, acc, potential); break;
        case 3: r = nbody_validate(&sim); break;
        case 4: r = nbody_reserve(&sim, &d, s->n); break;
        default: r = nbody_step(&sim, &d, &b, (real)1e-6, NBODY_LEAPFROG);
        }
        CHECK(r == NBODY_OK || r == NBODY_OUT_OF_MEMORY || (step == 3 && r == NBODY_NOT_BUILT));
        if (r == NBODY_OUT_OF_MEMORY) {
            failures++;
            if (step < 3) CHECK(acc[0] == 42 && potential[0] == 42);
            if (step != 3) CHECK(sim.n == 0 && sim.frame == NULL);
            if (step == 5) CHECK(b.fresh == 0);
        }
        CHECK(h->live_bytes == nbody_bytes(&sim) && !h->wrong);
    }
    *calls = h->calls;
    h->fail_at = 0; /* and whatever failed, it works now */
    CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, acc, potential), NBODY_OK);
    CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
    nbody_free(&sim);
    free(acc);
    free(potential);
    free(pos);
    free(vel);
    return failures;
}

static void test_out_of_memory(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        heap h = {0, 0, 0, 0, 0, 0};
        oracle_scene s = scene_of(80);
        int64_t total, calls, k;
        int64_t told = 0;
        CHECK(memory_scenario(&h, &s, kind, 0, &total) == 0 && total >= 4);
        for (k = 1; k <= total; k++) {
            int failures;
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            failures = memory_scenario(&h, &s, kind, 0, &calls); /* none where a smaller size did as well */
            CHECK(failures <= 1 && calls >= k && h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong);
            told += failures;
            memset(&h, 0, sizeof h);
            h.fail_at = k;
            failures = memory_scenario(&h, &s, kind, 1, &calls); /* two where the next step needs memory as well */
            CHECK((failures == 1 || failures == 2) && calls >= k && h.live_bytes == 0 && h.live_blocks == 0 && !h.wrong);
        }
        CHECK(told >= 4);
        oracle_forget(&s);
    }
}

/* Memory goes back to where it came from: another allocator is refused as long as there is some. */
static void test_change_of_allocator(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0}, other = {0, 0, 0, 0, 0, 0};
    nbody sim = {0};
    nbody_desc d = desc_of(KIND_C4), second = d, none = d;
    real acc[16], potential[16];
    (void)state;
    d.allocator = allocator_of(&h);
    second.allocator = allocator_of(&other);
    (void)fill(potential);
    CHECK_RESULT(nbody_accelerations(&sim, &d, four, 0, NULL, 4, acc), NBODY_OK);
    CHECK_RESULT(nbody_fields(&sim, &none, four, 0, NULL, 4, fill(acc), potential), NBODY_BAD_ALLOCATOR);
    check_empty(&sim, &d, acc, potential);
    CHECK_RESULT(nbody_build(&sim, &second, four, 0, NULL, 4), NBODY_BAD_ALLOCATOR);
    check_empty(&sim, &d, acc, potential);
    CHECK_RESULT(nbody_reserve(&sim, &second, 4), NBODY_BAD_ALLOCATOR);
    check_empty(&sim, &d, acc, potential);
    CHECK(h.live_bytes == nbody_bytes(&sim) && h.live_bytes > 0 && other.calls == 0);
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && !h.wrong);
    CHECK_RESULT(nbody_build(&sim, &second, four, 0, NULL, 4), NBODY_OK);
    nbody_free(&sim);
    CHECK(other.live_blocks == 0 && other.calls > 0 && !other.wrong);
}

/* Memory that is not aligned is refused, however often it is tried, and given back. */
static void test_crooked_memory(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nbody sim = {0};
    nbody_desc d = desc_of(KIND_C4);
    real acc[16];
    int round;
    (void)state;
    d.allocator.alloc = crooked_alloc;
    d.allocator.free = crooked_free;
    d.allocator.user = &h;
    for (round = 0; round < 20; round++) {
        CHECK_RESULT(nbody_accelerations(&sim, &d, four, 0, NULL, 4, fill(acc)), NBODY_BAD_ALLOCATOR);
        CHECK(sim.n == 0 && sim.frame == NULL && h.calls > round && !h.wrong && same(acc, untouched, sizeof acc));
    }
    CHECK(h.live_blocks == 0);
    nbody_free(&sim);
    CHECK(h.live_blocks == 0 && !h.wrong);
}

/* ------------------------------------------------------------------------------------------------
   Several at once
   ------------------------------------------------------------------------------------------------ */

/* Walks and questions to several, in turn, do not disturb each other: nothing is shared. */
static void test_several_in_turn(void **state)
{
    enum { MANY = 4, N = 120 };
    nbody sims[MANY];
    oracle_scene scenes[MANY];
    real acc[MANY][2 * N], at[2], again[MANY][2];
    nbody_far walk[MANY];
    int32_t met[MANY], alone[MANY], corner[MANY];
    int k, going = MANY;
    (void)state;
    memset(sims, 0, sizeof sims);
    for (k = 0; k < MANY; k++) {
        nbody_desc d = desc_of(KIND_VP + k);
        d.law = (nbody_law)(k % 2);
        scenes[k] = scene_of(N);
        CHECK_RESULT(nbody_accelerations(&sims[k], &d, scenes[k].pos, 0, scenes[k].mass, N, acc[k]), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sims[k], four, 0, 1, again[k], NULL, NULL), NBODY_OK);
        corner[k] = sims[k].frame->level_first[2]; /* the lower left cell of level 2: 12 are far from it */
        met[k] = alone[k] = 0;
        walk[k] = nbody_far_of(&sims[k], corner[k]);
        while (nbody_next_far(&walk[k])) alone[k] += walk[k].cell;
        CHECK(alone[k] > 0);
    }
    for (k = 0; k < MANY; k++) walk[k] = nbody_far_of(&sims[k], corner[k]);
    while (going > 0)
        for (going = 0, k = 0; k < MANY; k++) {
            nbody_error e;
            if (!nbody_next_far(&walk[k])) continue;
            going++;
            met[k] += walk[k].cell;
            CHECK_RESULT(nbody_fields_at(&sims[k], four, 0, 1, at, NULL, NULL), NBODY_OK);
            CHECK(same(at, again[k], sizeof at));
            CHECK_RESULT(nbody_estimate(&sims[k], acc[k], N, 0, &e), NBODY_OK);
            CHECK(e.share < 0.01);
        }
    for (k = 0; k < MANY; k++) {
        CHECK(met[k] == alone[k]);
        nbody_free(&sims[k]);
        oracle_forget(&scenes[k]);
    }
}

/* All stages, the plain one and the others, with potentials too: the same bits. */
static void check_stages(const oracle_scene *s, nbody_desc d, real *acc, real *potential)
{
    size_t const bytes = (size_t)s->n * sizeof(real);
    nbody sim = {0};
    int stage;
    CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, acc, potential), NBODY_OK);
    for (stage = 0; stage <= NBODY_SHARED_MEMORY; stage++) {
        real *again = calloc(3 * (size_t)s->n, sizeof *again);
        d.stage = (nbody_stage)stage;
        d.max_cells = stage;                    /* the GPU's, and nothing to the serial code */
        CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, again, potential ? again + 2 * s->n : NULL), NBODY_OK);
        CHECK(same(acc, again, 2 * bytes));
        if (potential) CHECK(same(potential, again + 2 * s->n, bytes));
        free(again);
    }
    nbody_free(&sim);
}

static void test_stages(void **state)
{
    int kind, law, softened, with_potential;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (law = 0; law < 2; law++) for (softened = 0; softened < 2; softened++)
        for (with_potential = 0; with_potential < 2; with_potential++) {
            oracle_scene s = scene_of(150);
            real acc[300], potential[150];
            nbody_desc d = desc_of(kind);
            d.law = (nbody_law)law;
            d.softening = softened ? (real)0.02 : 0;
            d.levels = with_potential ? 5 : 0;
            check_stages(&s, d, acc, with_potential ? potential : NULL);
            oracle_forget(&s);
        }
}

/* With and without potentials, and by nbody_build before: the same bits. */
static void test_same_bits(void **state)
{
    int kind, law, softened;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (law = 0; law < 2; law++) for (softened = 0; softened < 2; softened++) {
        oracle_scene s = scene_of(150);
        real acc[300], again[300], potential[150], alone[150];
        nbody sim = {0};
        nbody_desc d = desc_of(kind);
        d.law = (nbody_law)law;
        d.softening = softened ? (real)0.02 : 0;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, again, potential), NBODY_OK);
        CHECK(kind == KIND_C4 || same(acc, again, sizeof acc)); /* C4: tables of one level and of all round differently */
        CHECK_BELOW(fabs((double)(acc[0] - again[0])), 1e-5 * fabs((double)acc[0]));
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, NULL, alone), NBODY_OK);
        CHECK(same(potential, alone, sizeof potential));
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_descs),
        TEST(test_bad_bodies),
        TEST(test_bad_calls),
        TEST(test_too_large),
        TEST(test_failing_step),
        TEST(test_not_built),
        TEST(test_points_without_numbers),
        TEST(test_texts),
        TEST(test_defaults),
        TEST(test_automatic_method),
        TEST(test_levels_for),
        TEST(test_strides),
        TEST(test_step_ignores_strides),
        TEST(test_no_bodies),
        TEST(test_reuse),
        TEST(test_kept_tables),
        TEST(test_no_sources),
        TEST(test_again_takes_no_memory),
        TEST(test_reserve),
        TEST(test_growth),
        TEST(test_out_of_memory),
        TEST(test_change_of_allocator),
        TEST(test_crooked_memory),
        TEST(test_several_in_turn),
        TEST(test_stages),
        TEST(test_same_bits),
    };
    if (getenv("NBODY_TEST_ONLY")) cmocka_set_test_filter(getenv("NBODY_TEST_ONLY"));
    return cmocka_run_group_tests_name("nbody calls", tests, NULL, NULL);
}
