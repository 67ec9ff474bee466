/* validate.c - a part of test_nbody.c: nbody_validate finds damage to each array, and reads
   nothing out of bounds while it looks.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct word { void *at; size_t bytes; int64_t count; } word;

/* Arrays and numbers of a tree of which any other value is damage. */
static int words_of(nbody *sim, word *words)
{
    nbody_frame *f = sim->frame;
    word const all[] = {
        {sim->id, 4, sim->n}, {sim->cell, sizeof(nbody_cell), sim->cell ? f->cells : 0},
        {&f->levels, 4, sim->cell != NULL}, {f->level_first, 4, sim->cell ? f->levels + 1 : 0},
        {&f->cells, 4, sim->cell != NULL},
    };
    int k, used = 0;
    for (k = 0; k < COUNT_OF(all); k++) if (all[k].at && all[k].count) words[used++] = all[k];
    return used;
}

static int32_t odd_number(int32_t was, int32_t n)
{
    int32_t const odd[] = {was ^ 1, was ^ 0x10000, -1, 0, n - 1, n, n + 1, INT32_MAX, INT32_MIN,
        roll(n)};
    return odd[roll(COUNT_OF(odd))];
}

/* Damages one number of a cell (which: roll of 10). Returns whether it is another one now. */
static int damage_cell(nbody_cell *cell, int which, int32_t n)
{
    nbody_cell const was = *cell;
    int32_t *const number[] = {&cell->x, &cell->y, &cell->first, &cell->count, &cell->parent,
        &cell->child};
    if (which < 6) *number[which] = odd_number(*number[which], n);
    else if (which == 6) cell->level = (uint8_t)(roll(2) ? cell->level + 1 : roll(256));
    else if (which == 7) cell->children = (uint8_t)roll(6);
    else if (which == 8) cell->beside_count = (uint8_t)roll(12);
    else cell->beside[roll(cell->beside_count)] =
             odd_number(cell->beside[roll(cell->beside_count)], n);
    return !same(&was, cell, sizeof was);
}

static int damage(const word *w, int32_t k, int32_t n)
{
    int32_t *number = (int32_t *)w->at + k, was;
    if (w->bytes > 4) return damage_cell((nbody_cell *)w->at + k, roll(10), n);
    was = *number;
    *number = odd_number(was, n);
    return *number != was;
}

static void test_validate_finds_damage(void **state)
{
    int k, step, found = 0;
    (void)state;
    for (k = 0; k < COUNT_OF(settings) + 1; k += small_run() ? 9 : 1) {
        oracle_scene s;
        nbody sim = {0};
        word words[8];
        nbody_desc d;
        int used;
        memset(&d, 0, sizeof d);
        if (k < COUNT_OF(settings)) d = oracle_desc(&settings[k]);
        else d.method = NBODY_DIRECT;
        d.leaf = 4;
        oracle_make(&s, k % 2 ? ORACLE_CLUMPS : ORACLE_UNIFORM, 100, 0, &dice);
        if (k % 3 == 2) oracle_squeeze(&s, 1e-9);
        note(&s, &d, k < COUNT_OF(settings) ? settings[k].name : "direct");
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        used = words_of(&sim, words);
        for (step = 0; step < (small_run() ? 30 : 300); step++) {
            const word *w = &words[roll(used)];
            int32_t const at = roll((int)w->count);
            uint8_t *memory = (uint8_t *)w->at + w->bytes * (size_t)at, saved[sizeof(nbody_cell)];
            int other;
            memcpy(saved, memory, w->bytes);
            other = damage(w, at, s.n);
            CHECK_RESULT(nbody_validate(&sim), other ? NBODY_INVALID : NBODY_OK);
            found += other;
            memcpy(memory, saved, w->bytes);
        }
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
        oracle_forget(&s);
    }
    CHECK(small_run() || found > 1000);
}

static void spoil_made(nbody *sim, int32_t cell, int32_t count)
{
    int32_t const was = sim->made[cell];
    sim->made[cell] = count;
    CHECK_RESULT(nbody_validate(sim), NBODY_INVALID);
    sim->made[cell] = was;
}

/* Masses near the smallest numbers: what rounding there makes of the sources is no damage. */
static void test_validate_tiny_masses(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t i;
        if (k % 3 && small_run()) continue;
        d.leaf = 3;
        oracle_make(&s, ORACLE_UNIFORM, 80, 1, &dice);
        for (i = 1; i < s.n; i++) s.mass[i] = (real)(IS_FLOAT ? 1e-44 : 1e-323) * (real)(1 + i % 7);
        s.mass[0] = 1;
        note(&s, &d, settings[k].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Bodies that moved to another cell or are no numbers, sources of another mass, ids that changed
   places (which is none). */
static void test_validate_reads_numbers(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(settings); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[k]);
        int32_t c, swap;
        d.leaf = 6;
        oracle_make(&s, ORACLE_UNIFORM, 200, 0, &dice);
        note(&s, &d, settings[k].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
#define SPOILED(number, value) do { \
            real const was_ = (number); \
            (number) = (value); \
            CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID); \
            (number) = was_; \
        } while (0)
        SPOILED(sim.x[5], sim.x[5] < (real)0.5 ? sim.x[5] + (real)0.5 : sim.x[5] - (real)0.5);
        SPOILED(sim.y[150], sim.y[150] < (real)0.5 ? sim.y[150] + (real)0.5 :
            sim.y[150] - (real)0.5);
        SPOILED(sim.x[199], REAL_NAN);
        SPOILED(sim.y[0], REAL_INFINITY);
        SPOILED(sim.m[77], REAL_NAN);
        /* parents before the first cell, at the cell itself and behind it */
        for (c = 1; c < sim.frame->cells; c += 7) {
            int32_t const parent = sim.cell[c].parent;
            for (swap = -2; swap < 2; swap++) {
                sim.cell[c].parent = swap < 0 ? swap : c + swap;
                CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
            }
            sim.cell[c].parent = parent;
        }
        for (c = sim.frame->level_first[2]; c < sim.frame->cells; c++) if (sim.cell[c].child >= 0) {
            SPOILED(sim.vm[(size_t)c * (size_t)sim.per_cell],
                sim.vm[(size_t)c * (size_t)sim.per_cell] + (real)0.5);
            SPOILED(sim.m[sim.cell[c].first], (real)1e6);
            if (!sim.made) continue;
            spoil_made(&sim, c, -1);
            spoil_made(&sim, c, sim.made[c] - 1);
            spoil_made(&sim, c, sim.per_cell + 1);
        }
        swap = sim.id[3];
        sim.id[3] = sim.id[4];
        sim.id[4] = swap;
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        sim.id[4] = sim.id[3];
        CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
        sim.id[4] = s.n; /* the first that there is not */
        CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
        sim.id[4] = -1;
        CHECK_RESULT(nbody_validate(&sim), NBODY_INVALID);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}

/* Large ones are valid, whatever rounding did. */
static void test_validate_large(void **state)
{
    static const int chosen[] = {S_VP, S_MOMENTS, S_C4, S_C12};
    int32_t const n = small_run() ? 200 : environment("NBODY_LARGE", 0) ? 1000000 : 30000;
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(chosen); k++) {
        oracle_scene s;
        nbody sim = {0};
        nbody_desc d = oracle_desc(&settings[chosen[k]]);
        oracle_make(&s, k % 2 ? ORACLE_MASSES : ORACLE_CLUMPS, n, 0, &dice);
        note(&s, &d, settings[chosen[k]].name);
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        nbody_free(&sim);
        oracle_forget(&s);
    }
}
