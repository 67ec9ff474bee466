/* sets.c - a part of test_nbody.c: several sets of masses in one call give the bits of one call for
   each.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { SETS_MOST = 9 };

/* Masses of another order of size in each set, none in places that differ. */
static real *masses_of_sets(const oracle_scene *s, int sets, int step)
{
    real *mass = NEW(real, (size_t)(sets * step) * (size_t)s->n);
    int32_t i;
    int k;
    for (k = 0; k < sets; k++)
        for (i = 0; i < s->n; i++)
            mass[(k * s->n + i) * step] =
                (i + k) % 7 == 0 ? 0 : (real)ldexp((double)wl_u(&dice), 3 * k);
    return mass;
}

/* Nodes begin on level 2. */
static void check_nodes_of_sets(const nbody *sim, const nbody *fresh)
{
    int32_t const first = fresh->cell ? fresh->frame->level_first[2] : 0;
    if (!fresh->fx || fresh->frame->levels < 3) return;
    CHECK(same(sim->fx + first * fresh->nodes, fresh->fx + first * fresh->nodes,
        (size_t)((fresh->frame->cells - first) * fresh->nodes) * sizeof *fresh->fx));
}

/* acc and potential of the first set, the last and some between, against a tree of their own. */
static void check_sets(nbody *sim, const oracle_scene *s, const nbody_desc *d, int sets,
    int outputs)
{
    size_t const n = (size_t)s->n;
    real *mass = masses_of_sets(s, sets, 1), *acc = NEW(real, 2 * n * SETS_MOST),
         *potential = NEW(real, n * SETS_MOST), *want = NEW(real, 2 * n), *phi = NEW(real, n);
    int k;
    CHECK_RESULT(nbody_fields_sets(sim, sets, mass, outputs & 1 ? acc : NULL,
        outputs & 2 ? potential : NULL), NBODY_OK);
    for (k = 0; k < sets; k++) {
        nbody fresh = {0};
        if (k > 0 && k < sets - 1 && (k + outputs) % 3 > 0) continue;
        CHECK_RESULT(nbody_fields(&fresh, d, s->pos, 0, mass + (size_t)k * n, s->n,
            outputs & 1 ? want : NULL, outputs & 2 ? phi : NULL), NBODY_OK);
        CHECK(!(outputs & 1) || same(acc + 2 * n * (size_t)k, want, 2 * n * sizeof *acc));
        CHECK(!(outputs & 2) || same(potential + n * (size_t)k, phi, n * sizeof *phi));
        if (k == sets - 1) { /* what it then holds */
            CHECK(sim->frame->mass == fresh.frame->mass && sim->bad_id == -1);
            CHECK(same(sim->m, fresh.m, n * sizeof *phi));
            check_nodes_of_sets(sim, &fresh);
        }
        nbody_free(&fresh);
    }
    CHECK_RESULT(nbody_validate(sim), NBODY_OK);
    free(mass);
    free(acc);
    free(potential);
    free(want);
    free(phi);
}

static nbody_desc desc_of_sets(int kind, int k)
{
    nbody_desc d = desc_of(kind);
    d.law = (nbody_law)(k & 1);
    d.softening = k & 2 ? (real)0.02 : 0;
    d.stage = k & 4 ? NBODY_ONE_THREAD : NBODY_FAST;
    return d;
}

/* Every number of sets, with and without each output; passes that are full and that are not. */
static void test_sets(void **state)
{
    int kind, k, sets;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) for (k = kind & 1; k < 5; k += 2) {
        oracle_scene s;
        nbody_desc const d = desc_of_sets(kind, k);
        nbody sim = {0};
        if (others_turn(kind / 2 + k / 2)) continue;
        s = scene_of(130);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        for (sets = 1; sets <= SETS_MOST; sets += small_run() ? 4 : sets < 6 ? 1 : 3)
            check_sets(&sim, &s, &d, sets, 1 + (sets + k) % 3);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Trees with leaves beside cells that are divided, of orders with rows of several vectors. */
static void test_sets_in_clumps(void **state)
{
    static const int32_t orders[] = {3, 4, 5, 8, 9};
    int o, k;
    (void)state;
    for (o = 0; o < 5; o++) for (k = o & 1; k < (small_run() ? 2 : 4); k += 2) {
        oracle_scene s = scene_of(small_run() ? 400 : 700);
        nbody_desc d = desc_of_sets(KIND_C4, k);
        nbody sim = {0};
        int32_t i;
        for (i = 0; i < 300; i++) { /* 0.3 + a tenth, so that few bodies act on nodes */
            s.pos[2 * i] = (real)0.3 + s.pos[2 * i] / 50;
            s.pos[2 * i + 1] = (real)0.6 + s.pos[2 * i + 1] / 50;
        }
        d.order = orders[o];
        d.leaf = 12;
        d.levels = 0;
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
        check_sets(&sim, &s, &d, 4, 3);
        check_sets(&sim, &s, &d, 3, 1);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Against the direct sum in double, and with gravity that repels. */
static void test_sets_are_right(void **state)
{
    enum { N = 400, SETS = 5 };
    oracle_scene s = scene_of(N);
    real *mass = masses_of_sets(&s, SETS, 1), acc[2 * N * SETS];
    nbody_desc d = desc_of(KIND_C4);
    nbody sim = {0};
    int k;
    int32_t i, j;
    (void)state;
    d.order = 8;
    d.gravity = -2;
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, N), NBODY_OK);
    CHECK_RESULT(nbody_fields_sets(&sim, SETS, mass, acc, NULL), NBODY_OK);
    for (k = 0; k < SETS; k++) for (i = 0; i < N; i += 13) {
        const real *a = acc + 2 * (k * N + i);
        double x = 0, y = 0, all = 0;
        for (j = 0; j < N; j++) {
            double const dx = (double)s.pos[2 * j] - (double)s.pos[2 * i],
                         dy = (double)s.pos[2 * j + 1] - (double)s.pos[2 * i + 1],
                         r = hypot(dx, dy), m = -2 * (double)mass[k * N + j];
            if (j == i || r <= 0) continue;
            x += m * dx / (r * r * r);
            y += m * dy / (r * r * r);
            all += fabs(m) / (r * r);
        }
        CHECK_BELOW(hypot((double)a[0] - x, (double)a[1] - y), (2.6e-5 + rounding()) * all);
    }
    nbody_free(&sim);
    free(mass);
    oracle_forget(&s);
}

/* With desc.parallel, and masses and accelerations that lie apart. */
static void test_sets_in_tasks(void **state)
{
    enum { SETS = 6 };
    int kind, k;
    int32_t i;
    (void)state;
    for (kind = KIND_FN4C; kind <= KIND_C4; kind++) {
        oracle_scene s = scene_of(1500);
        real *mass = masses_of_sets(&s, SETS, 2), *acc = NEW(real, 3 * SETS * (size_t)s.n),
             *want = NEW(real, 3 * (size_t)s.n);
        nbody sim = {0}, serial = {0};
        nbody_desc d = desc_of(kind);
        d.leaf = 32;
        d.mass_stride = 2 * sizeof(real);
        d.acc_stride = 3 * sizeof(real);
        CHECK_RESULT(nbody_build(&serial, &d, s.pos, 0, NULL, s.n), NBODY_OK);
        d.parallel.run = from_the_last;
        d.parallel.tasks = 5;
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, NULL, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_sets(&sim, SETS, mass, acc, NULL), NBODY_OK);
        for (k = 0; k < SETS; k++) {
            const real *got = acc + 3 * (size_t)(k * s.n);
            CHECK_RESULT(nbody_fields_again(&serial, mass + 2 * k * s.n, want, NULL), NBODY_OK);
            for (i = 0; i < s.n; i++) CHECK(same(got + 3 * i, want + 3 * i, 2 * sizeof *acc));
        }
        nbody_free(&sim);
        nbody_free(&serial);
        free(mass);
        free(acc);
        free(want);
        oracle_forget(&s);
    }
}

/* Without outputs, or without masses: it holds the last set. */
static void test_sets_set_masses(void **state)
{
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        oracle_scene s = scene_of(150);
        real *mass = masses_of_sets(&s, 3, 1), got[2], want[2];
        nbody sim = {0}, fresh = {0};
        nbody_desc const d = desc_of(kind);
        CHECK_RESULT(nbody_build(&fresh, &d, s.pos, 0, mass + 2 * s.n, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&fresh, four, 0, 1, want, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_fields_sets(&sim, 3, mass, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, 1, got, NULL, NULL), NBODY_OK);
        CHECK(same(got, want, sizeof got));
        CHECK_RESULT(nbody_fields_sets(&sim, 0, mass, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, four, 0, 1, got, NULL, NULL), NBODY_OK);
        CHECK(same(got, want, sizeof got));
        CHECK_RESULT(nbody_fields_sets(&sim, 2, NULL, NULL, NULL), NBODY_OK);
        CHECK(sim.m[0] * (real)sim.frame->mass == 1);
        nbody_free(&sim);
        nbody_free(&fresh);
        free(mass);
        oracle_forget(&s);
    }
}

/* A bad mass in the last of six sets: nothing is written of any. */
static void test_sets_refused(void **state)
{
    int kind, k;
    (void)state;
    CHECK_RESULT(nbody_fields_sets(NULL, 1, NULL, NULL, NULL), NBODY_BAD_ARGUMENT);
    for (kind = 0; kind < KINDS; kind++) for (k = 0; k < 2; k++) {
        int const fine = k == 1 && (kind == KIND_DIRECT || kind == KIND_C4);
        real mass[24], acc[48];
        nbody sim = {0};
        nbody_desc const d = desc_of(kind);
        int i;
        for (i = 0; i < 24; i++) mass[i] = 1;
        for (i = 0; i < 48; i++) acc[i] = 5;
        CHECK_RESULT(nbody_fields_sets(&sim, 2, mass, acc, NULL), NBODY_NOT_BUILT);
        CHECK_RESULT(nbody_build(&sim, &d, NULL, 0, NULL, 0), NBODY_OK);
        CHECK_RESULT(nbody_fields_sets(&sim, 6, NULL, NULL, NULL), NBODY_OK);
        CHECK_RESULT(nbody_build(&sim, &d, four, 0, NULL, 4), NBODY_OK);
        CHECK_RESULT(nbody_fields_sets(&sim, -1, mass, acc, NULL), NBODY_BAD_ARGUMENT);
        mass[22] = k == 0 ? REAL_NAN : -1;
        CHECK_RESULT(nbody_fields_sets(&sim, 6, mass, acc, NULL),
            fine ? NBODY_OK : k == 0 ? NBODY_NOT_FINITE : NBODY_BAD_MASS);
        for (i = 0; i < 48; i++) CHECK(fine || acc[i] == 5);
        CHECK(fine || sim.bad_id == 2);
        if (!fine) check_holds_nothing(&sim, NBODY_NOT_BUILT);
        nbody_free(&sim);
    }
}
