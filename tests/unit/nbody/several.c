/* several.c - a part of test_nbody.c: several simulations in turn do not disturb each other; all
   stages, and all choices of outputs, give the same bits.
   SPDX-License-Identifier: MIT OR Unlicense */

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
        CHECK_RESULT(nbody_accelerations(&sims[k], &d, scenes[k].pos, 0, scenes[k].mass, N, acc[k]),
            NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sims[k], four, 0, 1, again[k], NULL, NULL), NBODY_OK);
        /* the lower left cell of level 2: 12 are far from it */
        corner[k] = sims[k].frame->level_first[2];
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
        CHECK_RESULT(nbody_fields(&sim, &d, s->pos, 0, s->mass, s->n, again,
            potential ? again + 2 * s->n : NULL), NBODY_OK);
        CHECK(same(acc, again, 2 * bytes));
        if (potential) CHECK(same(potential, again + 2 * s->n, bytes));
        free(again);
    }
    nbody_free(&sim);
}

static void test_stages(void **state)
{
    SLOW_TEST();
    int kind, law, softened, with_potential;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (law = 0; law < 2; law++)
            for (softened = 0; softened < 2; softened++)
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
    for (kind = 0; kind < KINDS; kind++) for (law = 0; law < 2; law++)
            for (softened = 0; softened < 2; softened++) {
        oracle_scene s = scene_of(150);
        real acc[300], again[300], potential[150], alone[150];
        nbody sim = {0};
        nbody_desc d = desc_of(kind);
        d.law = (nbody_law)law;
        d.softening = softened ? (real)0.02 : 0;
        CHECK_RESULT(nbody_accelerations(&sim, &d, s.pos, 0, s.mass, s.n, acc), NBODY_OK);
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, again, potential), NBODY_OK);
        /* C4: tables of one level and of all round differently */
        CHECK(kind == KIND_C4 || same(acc, again, sizeof acc));
        CHECK_BELOW(fabs((double)(acc[0] - again[0])), 1e-5 * fabs((double)acc[0]));
        CHECK_RESULT(nbody_fields(&sim, &d, s.pos, 0, s.mass, s.n, NULL, alone), NBODY_OK);
        CHECK(same(potential, alone, sizeof potential));
        nbody_free(&sim);
        oracle_forget(&s);
    }
}
