/* bad_calls.c - a part of test_nbody.c: refusals. Each has its exact result code, and leaves the
   simulation usable.
   SPDX-License-Identifier: MIT OR Unlicense */

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
    d.method = kind == KIND_DIRECT ? NBODY_DIRECT : kind <= KIND_VP_MOMENTS ?
        NBODY_VIRTUAL_PARTICLES : NBODY_FORCE_NODES;
    d.order = kind == KIND_DIRECT ? 0 : kind == KIND_VP_MOMENTS ? 2 :
        kind == KIND_VP || kind == KIND_FN8 ? 1 : 4;
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
   ---------------------------------------------------------------------------------------------- */

typedef struct refusal { nbody_result want; void (*spoil)(nbody_desc *); } refusal;

#define SPOIL(name, statement) static void name(nbody_desc *d) { statement; }
SPOIL(method_4, d->method = (nbody_method)4)
SPOIL(method_negative, d->method = (nbody_method)-1)
SPOIL(law_4, d->law = (nbody_law)4)
SPOIL(law_negative, d->law = (nbody_law)-1)
SPOIL(core_2, d->core = (nbody_core)2; d->law = NBODY_VORTEX)
SPOIL(core_negative, d->core = (nbody_core)-1)
SPOIL(core_of_square, d->core = NBODY_GAUSSIAN)
SPOIL(sources_3, d->sources = (nbody_sources)3)
SPOIL(sources_negative, d->sources = (nbody_sources)-1)
SPOIL(stage_4, d->stage = (nbody_stage)4)
SPOIL(stage_negative, d->stage = (nbody_stage)-1)
SPOIL(order_negative, d->order = -1)
SPOIL(order_13, d->method = NBODY_FORCE_NODES; d->order = NBODY_MAX_ORDER + 1)
SPOIL(order_of_vp, d->method = NBODY_VIRTUAL_PARTICLES; d->order = 3)
SPOIL(points_of_vp, d->method = NBODY_VIRTUAL_PARTICLES; d->order = 1; d->sources = NBODY_CHEBYSHEV)
SPOIL(points_of_even_nodes, d->method = NBODY_FORCE_NODES; d->order = 1;
    d->sources = NBODY_CHEBYSHEV)
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
SPOIL(cuda_alloc_alone, d->cuda_allocator.alloc =
    (void *(*)(size_t, struct CUstream_st *, void *))(size_t)1)
SPOIL(cuda_free_alone, d->cuda_allocator.free =
    (void (*)(void *, size_t, struct CUstream_st *, void *))(size_t)1)

static const refusal refusals[] = {
    {NBODY_BAD_OPTION, method_4}, {NBODY_BAD_OPTION, method_negative}, {NBODY_BAD_OPTION, law_4},
    {NBODY_BAD_OPTION, law_negative}, {NBODY_BAD_OPTION, core_2}, {NBODY_BAD_OPTION, core_negative},
    {NBODY_BAD_OPTION, core_of_square}, {NBODY_BAD_OPTION, sources_3},
    {NBODY_BAD_OPTION, sources_negative}, {NBODY_BAD_OPTION, stage_4},
    {NBODY_BAD_OPTION, stage_negative}, {NBODY_BAD_OPTION, order_negative},
    {NBODY_BAD_OPTION, order_13}, {NBODY_BAD_OPTION, order_of_vp}, {NBODY_BAD_OPTION, points_of_vp},
    {NBODY_BAD_OPTION, points_of_even_nodes}, {NBODY_BAD_OPTION, subcells_1},
    {NBODY_BAD_OPTION, subcells_3}, {NBODY_BAD_OPTION, subcells_16},
    {NBODY_BAD_OPTION, subcells_negative}, {NBODY_BAD_LEVELS, levels_negative},
    {NBODY_BAD_LEVELS, levels_18}, {NBODY_BAD_LEVELS, leaf_negative},
    {NBODY_BAD_LEVELS, max_cells_negative}, {NBODY_BAD_NUMBER, gravity_nan},
    {NBODY_BAD_NUMBER, gravity_infinite}, {NBODY_BAD_NUMBER, softening_negative},
    {NBODY_BAD_NUMBER, softening_nan}, {NBODY_BAD_NUMBER, softening_infinite},
    {NBODY_BAD_SQUARE, min_x_nan}, {NBODY_BAD_SQUARE, min_y_infinite},
    {NBODY_BAD_SQUARE, size_negative}, {NBODY_BAD_SQUARE, size_nan},
    {NBODY_BAD_SQUARE, size_infinite}, {NBODY_BAD_ARGUMENT, mass_stride_odd},
    {NBODY_BAD_ARGUMENT, mass_stride_short}, {NBODY_BAD_ARGUMENT, acc_stride_odd},
    {NBODY_BAD_ARGUMENT, acc_stride_short}, {NBODY_BAD_ALLOCATOR, alloc_alone},
    {NBODY_BAD_ALLOCATOR, free_alone}, {NBODY_BAD_ALLOCATOR, cuda_alloc_alone},
    {NBODY_BAD_ALLOCATOR, cuda_free_alone},
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
    CHECK(sim->n == 0 && sim->frame == NULL && sim->cell == NULL && sim->id == NULL &&
        sim->x == NULL && sim->vm == NULL);
    CHECK(sim->made == NULL && sim->fx == NULL && sim->fp == NULL && sim->table == NULL &&
        sim->vxx == NULL);
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
        nbody_result const want = fine ? NBODY_OK : k < 3 || i == 3 ? NBODY_NOT_FINITE :
            NBODY_BAD_MASS;
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
        real acc[16], potential[16], pos[8], vel[8] = {0}, own[8] = {0},
            nowhere[4] = {0, 0, REAL_NAN, 0};
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
        CHECK_RESULT(nbody_fields(NULL, &d, four, 0, masses, 4, acc, potential),
            NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, NULL, 0, masses, 4, acc, potential), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, four, 3, masses, 4, acc, potential), NBODY_BAD_ARGUMENT);
        REFUSED(nbody_fields(&sim, &d, four, 0, masses, INT32_MIN, acc, potential),
            NBODY_BAD_ARGUMENT);
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
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, too_many, acc, potential, &bad),
            NBODY_TOO_MANY);
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
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, masses, 4, fill(acc), potential),
                NBODY_TOO_LARGE);
            check_empty(&sim, &d, acc, potential);
        } else {
            CHECK_RESULT(nbody_fields(&sim, &d, pos, 0, masses, 4, acc, potential), NBODY_OK);
            for (i = 0; i < 8; i++) CHECK(acc[i] - acc[i] == 0);
            CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        }
        nbody_free(&sim);
    }
}

/* A step that fails: in the first forces nothing has moved; for the new positions, the bodies have
   drifted. */
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
    CHECK(sim.bad_id == 1 && pos[3] - pos[3] != 0 && vel[0] == 2 && pos[0] == 8 && b.fresh == 0 &&
        sim.n == 0);
    nbody_free(&sim);
}
