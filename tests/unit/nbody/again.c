/* again.c - a part of test_nbody.c: other masses for the bodies of a tree give the bits of a call
   that builds it anew.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Masses of another order of size than a scene's; none in the left half. */
static void other_masses(const oracle_scene *s, real *mass)
{
    int32_t i;
    for (i = 0; i < s->n; i++)
        mass[i] = s->pos[2 * i] < (real)0.5 ? 0 : 3000 * wl_u(&dice);
}

/* The fields of `mass` on the tree of `sim`, against those of a build of its own. */
static void check_again(nbody *sim, const oracle_scene *s, const nbody_desc *d, const real *mass,
    int outputs)
{
    real *got = NEW(real, 3 * (size_t)s->n), *want = NEW(real, 3 * (size_t)s->n);
    int const acc = outputs & 1, potential = outputs & 2;
    nbody fresh = {0};
    memset(got, 0, 3 * (size_t)s->n * sizeof *got);
    memset(want, 0, 3 * (size_t)s->n * sizeof *want);
    CHECK_RESULT(nbody_fields(&fresh, d, s->pos, 0, mass, s->n, acc ? want : NULL,
        potential ? want + 2 * s->n : NULL), NBODY_OK);
    CHECK_RESULT(nbody_fields_again(sim, mass, acc ? got : NULL,
        potential ? got + 2 * s->n : NULL), NBODY_OK);
    CHECK(same(got, want, 3 * (size_t)s->n * sizeof *got));
    CHECK(sim->frame->mass == fresh.frame->mass && sim->bad_id == -1);
    CHECK_RESULT(nbody_validate(sim), NBODY_OK);
    nbody_free(&fresh);
    free(got);
    free(want);
}

/* Other masses, all 1, and the first ones again; whatever the first call computed. */
static void test_again(void **state)
{
    int kind, k;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (k = 0; k < 5; k++) {
        oracle_scene s = scene_of(100);
        real acc[200], mass[100];
        nbody sim = {0};
        nbody_desc d = desc_of(kind);
        d.law = (nbody_law)(k & 1);
        d.softening = k & 2 ? (real)0.02 : 0;
        d.stage = k & 4 ? NBODY_ONE_THREAD : NBODY_FAST;
        other_masses(&s, mass);
        if (k & 1) CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        else CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
        check_again(&sim, &s, &d, mass, 3);
        check_again(&sim, &s, &d, NULL, 1);
        check_again(&sim, &s, &d, s.mass, 2);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

static void from_the_last(nbody_task *task, void *context, int32_t tasks, void *user)
{
    int32_t k;
    (void)user;
    for (k = tasks - 1; k >= 0; k--) task(context, k);
}

/* With desc.parallel, and masses and accelerations that lie apart. */
static void test_again_in_tasks(void **state)
{
    int kind;
    (void)state;
    for (kind = KIND_FN4C; kind <= KIND_C4; kind++) {
        oracle_scene s = scene_of(1500);
        real *mass = NEW(real, 2 * (size_t)s.n), *acc = NEW(real, 3 * (size_t)s.n),
             *want = NEW(real, 2 * (size_t)s.n);
        nbody sim = {0};
        nbody_desc d = desc_of(kind);
        int32_t i;
        d.leaf = 32;
        other_masses(&s, mass);
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, mass, s.n, want), NBODY_OK);
        for (i = s.n - 1; i >= 0; i--) mass[2 * i] = mass[i];
        d.parallel.run = from_the_last;
        d.parallel.tasks = 5;
        d.mass_stride = 2 * sizeof(real);
        d.acc_stride = 3 * sizeof(real);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_again(&sim, mass, acc, NULL), NBODY_OK);
        for (i = 0; i < s.n; i++) CHECK(same(acc + 3 * i, want + 2 * i, 2 * sizeof *acc));
        nbody_free(&sim);
        free(mass);
        free(acc);
        free(want);
        oracle_forget(&s);
    }
}

/* Without outputs the masses are set. */
static void test_again_for_points(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        oracle_scene s = scene_of(150);
        real mass[150], got[2], want[2], potential[2];
        nbody sim = {0}, fresh = {0};
        nbody_desc const d = desc_of(kind);
        other_masses(&s, mass);
        CHECK_RESULT(nbody_build(&fresh, &d, s.pos, 0, mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&fresh, four, 0, 1, want, &potential[0], NULL), NBODY_OK);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_again(&sim, mass, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, 1, got, &potential[1], NULL), NBODY_OK);
        CHECK(same(got, want, sizeof got) && potential[0] == potential[1]);
        nbody_free(&sim);
        nbody_free(&fresh);
        oracle_forget(&s);
    }
}

static void test_again_refused(void **state)
{
    int kind, k;
    (void)state;
    CHECK_RESULT(nbody_fields_again(NULL, NULL, NULL, NULL), NBODY_BAD_ARGUMENT);
    for (kind = 0; kind < KINDS; kind++) for (k = 0; k < 2; k++) {
        int const fine = k == 1 && (kind == KIND_DIRECT || kind == KIND_C4);
        real mass[4] = {1, 2, 3, 4}, acc[8] = {5, 5, 5, 5, 5, 5, 5, 5};
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        CHECK_RESULT(nbody_fields_again(&sim, mass, acc, NULL), NBODY_NOT_BUILT);
        CHECK_RESULT(nbody_build(&sim, &d, NULL, 0, NULL, 0), NBODY_OK);
        CHECK_RESULT(nbody_fields_again(&sim, NULL, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_build(&sim, &d, four, 0, NULL, 4), NBODY_OK);
        mass[2] = k == 0 ? REAL_NAN : -1;
        CHECK_RESULT(nbody_fields_again(&sim, mass, acc, NULL),
            fine ? NBODY_OK : k == 0 ? NBODY_NOT_FINITE : NBODY_BAD_MASS);
        CHECK(fine || (sim.bad_id == 2 && acc[0] == 5 && acc[7] == 5));
        if (!fine) check_holds_nothing(&sim, NBODY_NOT_BUILT);
        nbody_free(&sim);
    }
}
