/* strides.c - a part of test_nbody.c: positions, masses and accelerations in records with gaps;
   pointers that may be NULL.
   SPDX-License-Identifier: MIT OR Unlicense */

/* x, y, mass and acceleration in one record, with gaps, give what separate arrays give. */
static void test_strides(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        enum { N = 100 };
        struct record { real before, pos[2], between, mass, acc[2], after; } *records =
            NEW(struct record, N);
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
        CHECK_RESULT(nbody_fields(&other, &d, records->pos, sizeof *records, &records->mass, N,
            records->acc, second), NBODY_OK);
        CHECK(same(potential, second, sizeof potential));
        for (i = 0; i < N; i++) {
            const struct record *r = &records[i];
            CHECK(same(r->acc, acc + 2 * i, sizeof r->acc));
            CHECK(r->before == 99 && r->between == 99 && r->after == 99);
            CHECK(r->mass == s.mass[i] && same(r->pos, s.pos + 2 * i, sizeof r->pos));
        }
        CHECK_RESULT(nbody_estimate(&sim, acc, N, 1, &e), NBODY_OK);
        CHECK_RESULT(nbody_estimate(&other, records[0].acc, N, 1, &f), NBODY_OK);
        CHECK(e.samples == f.samples && same(&e.mean, &f.mean, sizeof e.mean) &&
            same(&e.worst, &f.worst, sizeof e.worst));
        CHECK_RESULT(nbody_fields_at(&sim, s.pos, 0, N, at, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, points, 3 * sizeof(real), N, again, NULL, NULL),
            NBODY_OK);
        CHECK(same(at, again, sizeof at));
        /* tightly packed, whatever acc_stride is */
        CHECK_RESULT(nbody_fields_at(&other, s.pos, 0, N, again, NULL, NULL), NBODY_OK);
        CHECK(same(at, again, sizeof at));
        d.mass_stride = sizeof *records;
        for (i = 0; i < N; i++) s.mass[i] = 1;
        d.acc_stride = 0;
        /* no mass: 1 each */
        CHECK_RESULT(nbody_fields(&other, &d, s.pos, 0, NULL, N, again, NULL), NBODY_OK);
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
    nbody_bodies a = {pos, vel, acc, masses, 4, 0},
        b = {other_pos, other_vel, other_acc, masses, 4, 0};
    nbody sim = {0};
    nbody_desc d = empty_desc();
    (void)state;
    memcpy(pos, four, sizeof pos);
    memcpy(other_pos, four, sizeof pos);
    CHECK_RESULT(nbody_step(&sim, &d, &a, (real)0.125, NBODY_LEAPFROG), NBODY_OK);
    d.mass_stride = d.acc_stride = 800 * sizeof(real);
    CHECK_RESULT(nbody_step(&sim, &d, &b, (real)0.125, NBODY_LEAPFROG), NBODY_OK);
    CHECK(same(pos, other_pos, sizeof pos) && same(vel, other_vel, sizeof vel) &&
        same(acc, other_acc, sizeof acc));
    nbody_free(&sim);
}

/* Without bodies a desc, strides and time steps are checked as with some. */
static void check_no_bodies_refused(nbody *sim, nbody_desc d, nbody_bodies *b)
{
    nbody_desc bad = d;
    CHECK_RESULT(nbody_build(sim, &d, NULL, 3, NULL, 0), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_fields(sim, &d, NULL, 3, NULL, 0, NULL, NULL), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_step(sim, &d, b, (real)NAN, NBODY_LEAPFROG), NBODY_BAD_NUMBER);
    bad.softening = -1;
    CHECK_RESULT(nbody_accelerations(sim, &bad, NULL, 0, NULL, 0, NULL), NBODY_BAD_NUMBER);
    CHECK_RESULT(nbody_step(sim, &bad, b, 1, NBODY_EULER), NBODY_BAD_NUMBER);
    CHECK_RESULT(nbody_reserve(sim, &bad, 0), NBODY_BAD_NUMBER);
    bad = d;
    bad.acc_stride = 3;
    CHECK_RESULT(nbody_fields(sim, &bad, NULL, 0, NULL, 0, NULL, NULL), NBODY_BAD_ARGUMENT);
    bad = d;
    bad.mass_stride = 3;
    CHECK_RESULT(nbody_build(sim, &bad, NULL, 0, NULL, 0), NBODY_BAD_ARGUMENT);
    CHECK(sim->n == 0 && !sim->frame);
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
        check_no_bodies_refused(&sim, d, &b);
        /* no output is asked for: the tree is built */
        CHECK_RESULT(nbody_fields(&sim, &d, four, 0, NULL, 4, NULL, NULL), NBODY_OK);
        CHECK(sim.n == 4);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
    }
}
