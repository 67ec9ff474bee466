/* files.c - a part of test_nbody.c: a tree that was saved and loaded has the same bits and gives
   the same fields; damaged, short and forged files are refused.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct file { unsigned char *bytes; int64_t size; } file;

enum { FILE_HEAD = IS_FLOAT ? 144 : 168 };

static file saved(const nbody *sim)
{
    file f;
    int64_t needed = -1;
    CHECK_RESULT(nbody_save(sim, NULL, 0, &f.size), NBODY_BUFFER_TOO_SMALL);
    CHECK(f.size == FILE_HEAD + 3 * (int64_t)sizeof(real) * sim->n);
    f.bytes = (unsigned char *)exactly((size_t)f.size);
    CHECK_RESULT(nbody_save(sim, f.bytes, f.size - 1, &needed), NBODY_BUFFER_TOO_SMALL);
    CHECK(needed == f.size && f.bytes[0] == 0xA5);
    CHECK_RESULT(nbody_save(sim, f.bytes, f.size, &needed), NBODY_OK);
    CHECK(needed == f.size);
    return f;
}

static void check_same_array(const void *a, const void *b, int64_t count, size_t size)
{
    CHECK(!a == !b);
    if (a) CHECK(same(a, b, (size_t)count * size));
}

/* Bodies, cells and sources, and what was chosen. */
static void check_same_tree(const nbody *a, const nbody *b)
{
    const nbody_real *const of_a[6] = {a->vm, a->vx, a->vy, a->vxx, a->vxy, a->vyy},
                     *const of_b[6] = {b->vm, b->vx, b->vy, b->vxx, b->vxy, b->vyy};
    int32_t c, s;
    int k;
    CHECK(a->n == b->n && b->frame && b->bad_id == -1 && a->per_cell == b->per_cell);
    CHECK(a->desc.method == b->desc.method && a->desc.levels == b->desc.levels);
    CHECK(a->desc.leaf == b->desc.leaf && a->desc.order == b->desc.order);
    CHECK(a->frame->cells == b->frame->cells && a->frame->levels == b->frame->levels);
    CHECK(a->frame->length == b->frame->length && a->frame->deep == b->frame->deep);
    check_same_array(a->id, b->id, a->n, sizeof *a->id);
    check_same_array(a->x, b->x, a->n, sizeof *a->x);
    check_same_array(a->y, b->y, a->n, sizeof *a->y);
    check_same_array(a->cell, b->cell, a->frame->cells, sizeof *a->cell);
    CHECK(!a->made == !b->made);
    for (c = 0; c < a->frame->cells; c++) {
        int32_t const made = a->cell[c].level < 2 ? 0 /* they act on nothing */
                           : !a->made ? a->per_cell
                           : c < a->frame->level_first[a->frame->levels - 1] ? a->made[c] : 0;
        if (a->made && made) CHECK(made == b->made[c]);
        for (k = 0; k < 6; k++) for (s = 0; of_a[k] && a->frame->levels > 2 && s < made; s++)
            CHECK(of_a[k][c * a->per_cell + s] == of_b[k][c * a->per_cell + s]);
    }
}

/* Fields at points and, with masses, at the bodies. */
static void check_same_fields(nbody *a, nbody *b, const real *mass)
{
    enum { POINTS_OF_A_FILE = 9 };
    real at[2 * POINTS_OF_A_FILE], acc[2][2 * POINTS_OF_A_FILE], potential[2][POINTS_OF_A_FILE];
    real *forces[2];
    int k;
    for (k = 0; k < 2 * POINTS_OF_A_FILE; k++) at[k] = (real)(3 * wl_u(&dice) - 1);
    for (k = 0; k < 2; k++)
        CHECK_RESULT(nbody_fields_at(k ? b : a, at, 0, POINTS_OF_A_FILE, acc[k], potential[k],
                                     NULL), NBODY_OK);
    CHECK(same(acc[0], acc[1], sizeof acc[0]) &&
          same(potential[0], potential[1], sizeof potential[0]));
    for (k = 0; k < 2; k++) {
        forces[k] = NEW(real, 2 * a->n);
        CHECK_RESULT(nbody_fields_again(k ? b : a, mass, forces[k], NULL), NBODY_OK);
    }
    CHECK(same(forces[0], forces[1], 2 * (size_t)a->n * sizeof(real)));
    free(forces[0]);
    free(forces[1]);
}

static void check_file(nbody *sim, nbody *loaded, const nbody_desc *d, const oracle_scene *s)
{
    file f;
    note(s, d, "file");
    CHECK_RESULT(nbody_build(sim, d, s->pos, 0, s->mass, s->n), NBODY_OK);
    f = saved(sim);
    CHECK(s->n == 0 || same(f.bytes + FILE_HEAD, s->pos, 2 * sizeof(real)));
    CHECK_RESULT(nbody_load(loaded, NULL, f.bytes, f.size), NBODY_OK);
    check_same_tree(sim, loaded);
    check_same_array(sim->m, loaded->m, sim->n, sizeof *sim->m);
    CHECK_RESULT(nbody_validate(loaded), NBODY_OK);
    check_same_fields(sim, loaded, s->mass);
    free(f.bytes);
}

/* NBODY_AUTO, bodies that cluster, in deep trees and in others: sim.desc
   makes the same tree again. */
static void test_files_of_choices(void **state)
{
    enum { CROWD = 1400 };
    static real pos[2 * CROWD];
    nbody sim = {0}, loaded = {0};
    oracle_scene s = {0};
    nbody_desc d = {0};
    int turn, i;
    (void)state;
    dice = wl_seed(61);
    s.pos = pos;
    s.n = CROWD;
    d.law = NBODY_VORTEX;
    for (turn = 0; turn < 9; turn++) {
        for (i = 0; i < s.n; i++) {
            double const r = pow(wl_u(&dice), 4), angle = 2.4 * i;
            pos[2 * i] = (real)(r * cos(angle));
            pos[2 * i + 1] = (real)(r * sin(angle));
        }
        d.order = 2 + turn / 3;
        d.softening = (real)(0.01 * (turn % 3));
        check_file(&sim, &loaded, &d, &s);
    }
    nbody_free(&sim);
    nbody_free(&loaded);
}

/* A periodic square, with bodies outside, and a law of the caller, which a file cannot hold. */
static void test_files_of_options(void **state)
{
    nbody sim = {0}, loaded = {0};
    oracle_scene s;
    nbody_desc d, given;
    file f;
    int turn;
    (void)state;
    dice = wl_seed(53);
    s = scene_of(200);
    for (turn = 0; turn < 2; turn++) {
        memset(&d, 0, sizeof d);
        memset(&given, 0, sizeof given);
        d.method = NBODY_FORCE_NODES;
        d.order = 4;
        d.leaf = 4;
        if (turn == 0) d.periodic = 1, d.min[0] = d.min[1] = (real)-0.25, d.size = (real)0.5;
        else d.law = NBODY_FUNCTION, d.function.force = line_force;
        note(&s, &d, turn ? "file, function" : "file, periodic");
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, s.n), NBODY_OK);
        f = saved(&sim);
        if (turn) CHECK_RESULT(nbody_load(&loaded, NULL, f.bytes, f.size), NBODY_BAD_ARGUMENT);
        given.function = d.function;
        CHECK_RESULT(nbody_load(&loaded, &given, f.bytes, f.size), NBODY_OK);
        CHECK(loaded.desc.periodic == d.periodic && loaded.desc.law == d.law);
        check_same_tree(&sim, &loaded);
        free(f.bytes);
    }
    nbody_free(&sim);
    nbody_free(&loaded);
    oracle_forget(&s);
}

/* Into objects that hold something already: what was there is gone. */
static void test_files(void **state)
{
    nbody sim = {0}, loaded = {0};
    int kind, k;
    (void)state;
    dice = wl_seed(51);
    for (kind = 0; kind <= KINDS; kind++) for (k = 0; k < (small_run() ? 6 : 12); k++) {
        oracle_scene s = scene_of(k < 3 ? k : 1 + roll(k < 11 ? 300 : 2500));
        nbody_desc d;
        memset(&d, 0, sizeof d);
        if (kind < KINDS) d = desc_of(kind); /* else automatic */
        d.law = (nbody_law)(k % 3);
        d.core = k % 3 && k % 2 ? NBODY_GAUSSIAN : NBODY_PLUMMER;
        d.softening = k % 4 == 1 ? (real)0.01 : 0;
        d.gravity = k % 5 == 1 ? (real)-0.7 : 0;
        if (k % 4 == 2) d.leaf = 3;
        if (k % 4 == 3) d.levels = 4;
        if (k == 5) d.min[0] = d.min[1] = -1, d.size = 4;
        check_file(&sim, &loaded, &d, &s);
        oracle_forget(&s);
    }
    for (kind = 0; kind < DEEP_KINDS; kind++) for (k = 0; k < 3; k++) {
        oracle_scene s = deep_scene(kind, 60 + 200 * k);
        nbody_desc d = desc_of(k == 0 ? KIND_C4 : k == 1 ? KIND_FN4C : KIND_VP);
        if (k < 2) d.leaf = 4;
        check_file(&sim, &loaded, &d, &s);
        CHECK(kind != CLUMP_9 || k || loaded.frame->deep);
        oracle_forget(&s);
    }
    nbody_free(&sim);
    nbody_free(&loaded);
}

/* Numbers that lose digits beside others: what the tree has of them comes back. */
static void test_files_of_extremes(void **state)
{
    enum { N = 200 };
    real const tiny = IS_FLOAT ? (real)1e-38 : (real)1e-300, huge = 1 / tiny / 100;
    nbody sim = {0}, loaded = {0};
    int k;
    (void)state;
    for (k = 0; k < 6; k++) {
        oracle_scene s = deep_scene(k % 2 ? CLUMP_9 : NESTED, N);
        nbody_desc d = desc_of(KIND_C4);
        real mass[N];
        file f;
        int32_t i;
        d.leaf = 4;
        for (i = 0; i < N; i++) {
            mass[i] = i % 3 ? 1 : i % 2 ? tiny * (real)(1 + i) : (real)i;
            if (k > 1 && k < 4) mass[i] *= tiny;
            if (k > 3 && i % 3 == 1) s.pos[2 * i] *= tiny;
            if (k == 2 && i % 3 == 1) s.pos[2 * i] *= huge;
        }
        CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, mass, N), NBODY_OK);
        f = saved(&sim);
        CHECK_RESULT(nbody_load(&loaded, NULL, f.bytes, f.size), NBODY_OK);
        check_same_tree(&sim, &loaded);
        check_same_array(sim.m, loaded.m, N, sizeof *sim.m);
        free(f.bytes);
        oracle_forget(&s);
    }
    nbody_free(&sim);
    nbody_free(&loaded);
}

static void check_bad_file(nbody *sim, const unsigned char *bytes, int64_t size)
{
    real at[2] = {0, 0}, acc[2];
    CHECK_RESULT(nbody_load(sim, NULL, bytes, size), NBODY_BAD_FILE);
    CHECK(sim->n == 0 && !sim->frame);
    CHECK_RESULT(nbody_fields_at(sim, at, 0, 1, acc, NULL, NULL), NBODY_NOT_BUILT);
}

static file small_file(int kind, int32_t n)
{
    oracle_scene s = scene_of(n);
    nbody_desc d = desc_of(kind);
    nbody sim = {0};
    file f;
    d.leaf = 3;
    d.law = (nbody_law)(kind % 2);
    CHECK_RESULT(nbody_build(&sim, &d, s.pos, 0, s.mass, n), NBODY_OK);
    f = saved(&sim);
    nbody_free(&sim);
    oracle_forget(&s);
    return f;
}

/* The checksum as the file format has it: of all, with its own field, the last of the header, 0. */
static void make_checksum_right(file *f)
{
    uint64_t sum = 0xCBF29CE484222325u;
    int64_t k;
    memset(f->bytes + FILE_HEAD - 8, 0, sizeof sum);
    for (k = 0; k < f->size; k++) sum = (sum ^ f->bytes[k]) * 0x100000001B3u;
    memcpy(f->bytes + FILE_HEAD - 8, &sum, sizeof sum);
}

/* Any one bit turned: of laws too, 1 bit from one that needs the caller's function. */
static void check_turned_bits(file *f)
{
    nbody loaded = {0};
    int64_t k;
    int bit;
    for (k = 0; k < f->size; k++) for (bit = 0; bit < 8; bit++) {
        f->bytes[k] = (unsigned char)(f->bytes[k] ^ 1 << bit);
        check_bad_file(&loaded, f->bytes, f->size);
        f->bytes[k] = (unsigned char)(f->bytes[k] ^ 1 << bit);
    }
    CHECK_RESULT(nbody_load(&loaded, NULL, f->bytes, f->size), NBODY_OK);
    nbody_free(&loaded);
}

/* Cut short anywhere, longer by one, and with any one bit turned. */
static void test_damaged_files(void **state)
{
    static const uint32_t order = 0x01020304u, version = 1;
    int32_t const numbers[2] = {(int32_t)sizeof(real), 9};
    nbody loaded = {0};
    file f;
    int64_t k;
    int kind;
    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        f = small_file(kind, kind % 3 * 4);
        check_turned_bits(&f);
        free(f.bytes);
    }
    f = small_file(KIND_C4, 9);
    CHECK(same(f.bytes, "nbody.h\n", 8) && same(f.bytes + 8, &order, 4));
    CHECK(same(f.bytes + 12, &version, 4) && same(f.bytes + 16, numbers, 8));
    for (k = 0; k < f.size; k++) {
        unsigned char *cut = (unsigned char *)exactly((size_t)k);
        memcpy(cut, f.bytes, (size_t)k);
        check_bad_file(&loaded, cut, k);
        free(cut);
    }
    f.bytes = (unsigned char *)realloc(f.bytes, (size_t)f.size + 1);
    f.bytes[f.size] = 0;
    check_bad_file(&loaded, f.bytes, f.size + 1);
    CHECK_RESULT(nbody_load(&loaded, NULL, f.bytes, f.size), NBODY_OK);
    free(f.bytes);
    nbody_free(&loaded);
}

/* Damage behind a right checksum: refused, or a tree that is whole and gives fields. */
static void test_forged_files(void **state)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 3, 4, 8, 9, 17, 48, 49, 50, 1 << 30, INT32_MAX,
        INT32_MIN, 0x7F800000, 0x7FC00000, -0x00800000, 0x3F000000};
    nbody sim = {0};
    int const steps = small_run() ? 500 : 5000;
    int refused = 0, taken = 0, k;
    (void)state;
    dice = wl_seed(52);
    for (k = 0; k < steps; k++) {
        file f = small_file(k % KINDS, 12);
        real at[2] = {(real)0.3, (real)0.1}, acc[2];
        int turns = 1 + roll(2);
        int32_t law;
        nbody_result r;
        for (; turns > 0; turns--) {
            int32_t const value = odd[roll(COUNT_OF(odd))];
            int const at_byte = roll(3) ? roll(FILE_HEAD / 4) * 4
                                        : FILE_HEAD + roll((int)f.size - FILE_HEAD - 4) / 4 * 4;
            if (roll(3) == 0) f.bytes[at_byte] = (unsigned char)roll(256);
            else memcpy(f.bytes + at_byte, &value, sizeof value);
        }
        make_checksum_right(&f);
        r = nbody_load(&sim, NULL, f.bytes, f.size);
        memcpy(&law, f.bytes + 28, sizeof law);
        free(f.bytes);
        /* a law of the caller, without one */
        if (r == NBODY_BAD_ARGUMENT && law == NBODY_FUNCTION) r = NBODY_BAD_FILE;
        if (r == NBODY_BAD_FILE) { refused++; CHECK(!sim.frame); continue; }
        CHECK_RESULT(r, NBODY_OK);
        taken++;
        CHECK_RESULT(nbody_validate(&sim), NBODY_OK);
        CHECK_RESULT(nbody_fields_at(&sim, at, 0, 1, acc, NULL, NULL), NBODY_OK);
    }
    CHECK(refused > steps / 4 && taken > steps / 20);
    nbody_free(&sim);
}

static void test_calls_for_files(void **state)
{
    heap h = {0, 0, 0, 0, 0, 0};
    nbody sim = {0};
    nbody_desc d;
    file f = small_file(KIND_FN8, 30);
    int32_t const many = 1 << 28;
    int64_t needed = 7, fail, calls = 1;
    (void)state;
    memset(&d, 0, sizeof d);
    d.allocator = allocator_of(&h);
    for (fail = 0; fail <= calls; fail++) { /* each allocation of a load fails once */
        nbody each = {0};
        h.calls = 0;
        h.fail_at = fail;
        CHECK_RESULT(nbody_load(&each, &d, f.bytes, f.size),
                     fail ? NBODY_OUT_OF_MEMORY : NBODY_OK);
        if (fail == 0) calls = h.calls;
        CHECK(!each.frame == (fail > 0) && h.live_bytes == nbody_bytes(&each));
        h.fail_at = 0;
        CHECK_RESULT(nbody_load(&each, &d, f.bytes, f.size), NBODY_OK);
        nbody_free(&each);
    }
    CHECK(calls > 4 && h.live_blocks == 0 && !h.wrong);
    CHECK_RESULT(nbody_load(NULL, NULL, f.bytes, f.size), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_load(&sim, &d, NULL, 1), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_load(&sim, &d, f.bytes, -1), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_save(&sim, NULL, 0, &needed), NBODY_NOT_BUILT);
    CHECK(needed == 0);
    CHECK_RESULT(nbody_save(NULL, NULL, 0, &needed), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_save(&sim, NULL, 0, NULL), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_save(&sim, NULL, 1, &needed), NBODY_BAD_ARGUMENT);
    CHECK_RESULT(nbody_load(&sim, &d, f.bytes, f.size), NBODY_OK);
    sim.frame->cells_needed = sim.frame->cells + 1; /* as a GPU leaves a tree that did not fit */
    CHECK_RESULT(nbody_save(&sim, NULL, 0, &needed), NBODY_CELLS_FULL);
    CHECK_RESULT(nbody_load(&sim, NULL, f.bytes, f.size), NBODY_BAD_ALLOCATOR);
    memcpy(f.bytes + 20, &many, sizeof many);
    make_checksum_right(&f);
    h.calls = 0;
    CHECK_RESULT(nbody_load(&sim, &d, f.bytes, f.size), NBODY_BAD_FILE);
    CHECK(h.calls == 0); /* much was promised, nothing taken */
    nbody_free(&sim);
    free(f.bytes);
}
