/* sums.c - a part of test_nlist.c: sums over the partners of each particle, against sums in
   int64_t; momentum, overflow of fixed-point sums, and history that a sum writes.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A made-up force between i and j, by numbers that differ from pair to pair: antisymmetric, so that
   the sum over all is 0. */
typedef struct law {
    const nlist *list;
    int values, half, bytes, wrong;
    double scale;
    int64_t calls;
} law;

static real force(const law *l, int32_t i, int32_t j, int v)
{
    int32_t const lower = i < j ? i : j, upper = i < j ? j : i;
    uint32_t const mixed = ((uint32_t)lower * 2654435761u ^ (uint32_t)upper * 0x9E3779B9u) +
        (uint32_t)v * 0x85EBCA6Bu;
    double const size = ((double)(mixed >> 8) / 16777216.0 - 0.5) * l->scale;
    return (real)(i < j ? size : -size);
}

/* Pairs that do not touch: what the contact then writes must not count. */
static int touches(int32_t i, int32_t j) { return (i + j) % 4 != 1; }

static int push(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    law *l = (law *)user;
    int const touch = touches(i, j);
    int v;
    l->calls++;
    l->wrong |= !history != !l->bytes;
    if (history) l->wrong |= history != nlist_history(l->list, nlist_find(l->list, i, j));
    for (v = 0; v < l->values; v++) {
        l->wrong |= own[v] < 0 || own[v] > 0 || other[v] < 0 || other[v] > 0;
        own[v] = touch ? force(l, i, j, v) : REAL_NAN;
        other[v] = touch && l->half ? -own[v] : REAL_NAN;
    }
    return touch;
}

/* The same without any list: over the pairs of a full list, in double, and in whole units. */
typedef struct plain_sums {
    double *sum, *size;
    int64_t *units;
    /* with a unit that is no power of two, where a quotient rounds: what the first way of adding up
       gave */
    real *first;
} plain_sums;

static plain_sums sum_by_hand(const nlist *full, const law *l, double unit)
{
    plain_sums p;
    size_t const count = (size_t)full->n * (size_t)l->values;
    int32_t i;
    int v;
    p.sum = NEW(double, count);
    p.size = NEW(double, count);
    p.units = NEW(int64_t, count);
    p.first = NULL;
    memset(p.units, 0, count * sizeof *p.units);
    for (i = 0; i < full->n * l->values; i++) p.sum[i] = p.size[i] = 0;
    for (i = 0; i < full->n; i++) {
        nlist_each e = nlist_of(full, i);
        while (nlist_next(&e)) for (v = 0; v < l->values && touches(i, e.id); v++) {
            real const f = force(l, i, e.id, v);
            p.sum[i * l->values + v] += (double)f;
            p.size[i * l->values + v] += fabs((double)f);
            if (unit > 0) p.units[i * l->values + v] += oracle_units(f, unit);
        }
    }
    return p;
}

static void drop_sums(plain_sums *p)
{
    free(p->sum);
    free(p->size);
    free(p->units);
    free(p->first);
}

/* Can the mode be had with this list? */
static int allowed(const nlist_desc *d, nlist_mode mode)
{
    int32_t const w = d->width;
    if (mode != NLIST_REDUCE || d->layout == NLIST_COMPACT || d->layout == NLIST_DYNAMIC) return 1;
    if (w == 0) return d->layout == NLIST_HYBRID;
    return w <= 32 && (w & (w - 1)) == 0;
}

static void check_sum(nlist *list, law *l, const nlist_sums *how, plain_sums *want, int64_t entries)
{
    int exponent;
    int const exact = how->unit > 0 && frexp(how->unit, &exponent) == 0.5;
    int32_t const count = list->n * l->values;
    real *sums = NEW(real, count);
    real const before = how->unit > 0 ? 0 : (real)roll(3);
    int32_t k;
    for (k = 0; k < count; k++) sums[k] = before;
    l->list = list;
    l->half = list->desc.half;
    l->bytes = list->desc.history;
    l->calls = 0;
    CHECK_RESULT(nlist_sum(list, how, push, l, sums), NLIST_OK);
    CHECK(!l->wrong && l->calls == entries);
    for (k = 0; k < count; k++) {
        double const off = fabs((double)sums[k] - ((double)before + want->sum[k]));
        if (exact) CHECK(sums[k] == (real)((double)want->units[k] * how->unit));
        else
            CHECK(off <= 20 * REAL_EPSILON * ((double)before + want->size[k]) +
                list->n * how->unit);
    }
    if (how->unit > 0 && want->first) CHECK(same(sums, want->first, (size_t)count * sizeof *sums));
    if (want->first) free(sums);
    else want->first = sums;
}

/* Layouts for sums: all widths that NLIST_REDUCE takes are among them. */
static const variant summed[] = {
    {NLIST_COMPACT, 0}, {NLIST_STATIC, AS_WIDE_AS_NEEDED}, {NLIST_STATIC, POWER_OF_TWO},
    {NLIST_DYNAMIC, 0}, {NLIST_HYBRID, 0}, {NLIST_HYBRID, 1}, {NLIST_HYBRID, 2}, {NLIST_HYBRID, 4},
    {NLIST_HYBRID, 5}, {NLIST_HYBRID, 8}, {NLIST_HYBRID, 16}, {NLIST_HYBRID, 32},
    {NLIST_HYBRID, 64},
};

/* Every layout, half and full, every mode, with a unit and without, from any source: the plain
   sum. */
static void check_sums(const oracle_scene *s, int source, double unit)
{
    nlist list = {0}, full = {0};
    nlist_desc d = oracle_desc(s);
    plain_sums want;
    feeder f;
    law l;
    int k, mode;
    memset(&l, 0, sizeof l);
    l.values = 1 + roll(16);
    l.scale = 3;
    make_feeder(&f, s, source);
    CHECK_RESULT(nlist_build_brute(&full, &d, s->pos, s->stride, s->n), NLIST_OK);
    want = sum_by_hand(&full, &l, unit);
    for (k = 0; k < 2 * COUNT_OF(summed); k++)
            for (mode = NLIST_AUTO; mode <= NLIST_REDUCE; mode++) {
        nlist_sums how;
        now.desc = &d;
        d.half = k % 2;
        d.history = mode ? 4 : 0;
        d.deterministic = unit > 0 && roll(2);
        set_variant(&d, &summed[k / 2], fullest_row(&full));
        if (d.history) nlist_free(&list); /* its number of bytes is fixed else */
        CHECK_RESULT(feed(&list, &d, &f, s), NLIST_OK);
        how.values = l.values;
        how.mode = (nlist_mode)mode;
        how.unit = unit;
        if (s->n == 0 || allowed(&d, how.mode)) check_sum(&list, &l, &how, &want, list.total);
        else CHECK_RESULT(nlist_sum(&list, &how, push, &l, NULL), NLIST_BAD_WIDTH);
        nlist_free(&list);
    }
    drop_sums(&want);
    drop_feeder(&f);
    nlist_free(&full);
}

static void test_sums(void **state)
{
    int counter, source;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 64; counter++) {
        /* crowds have long rows */
        int const input = counter % 3 ? roll(ORACLE_INPUTS) : ORACLE_CLUSTERED;
        oracle_scene s;
        if (!chosen(counter)) continue;
        oracle_make(&s, input, 2 + roll(2), roll(8), 2 + roll(90), option_sets[roll(6)], &dice);
        do source = roll(SOURCES); while (!possible(&s, source));
        now.scene = &s;
        now.source = source;
        check_sums(&s, source, counter % 4 == 0 ? 0 : counter % 4 == 1 ? 1e-4 :
            ldexp(1, -12 - roll(8)));
        oracle_forget(&s);
    }
}

/* Half lists with a unit: what i gets is what j loses, to the last bit, whatever the unit. */
static void test_momentum(void **state)
{
    static const double units[] = {1.0 / 65536, 1e-4, 3e-3, 0.7};
    int counter, moving = 0;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 48; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        nlist_sums how;
        law l;
        real *sums;
        double momentum[3] = {0, 0, 0};
        int32_t i;
        if (!chosen(counter)) continue;
        oracle_make(&s, counter % 2 ? ORACLE_UNIFORM : ORACLE_CLUSTERED, 3, roll(8), 40, 0, &dice);
        d = oracle_desc(&s);
        d.half = 1;
        d.layout = (nlist_layout)(counter % 4);
        d.width = 32;
        d.grow = 1;
        now.scene = &s;
        now.desc = &d;
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, s.stride, s.n), NLIST_OK);
        memset(&l, 0, sizeof l);
        l.values = 3;
        l.scale = 8;
        l.list = &list;
        l.half = 1;
        how.values = 3;
        how.mode = (nlist_mode)roll(3); /* REDUCE may not like what the width has grown to */
        how.unit = units[counter / 4 % COUNT_OF(units)];
        sums = NEW(real, 3 * s.n);
        for (i = 0; i < 3 * s.n; i++) sums[i] = 0;
        CHECK_RESULT(nlist_sum(&list, &how, push, &l, sums), NLIST_OK);
        for (i = 0; i < 3 * s.n; i++) {
            momentum[i % 3] += nearbyint((double)sums[i] / how.unit); /* whole numbers below 2^24 */
            moving += fabs((double)sums[i]) > 0.5;
        }
        for (i = 0; i < 3; i++) CHECK(fabs(momentum[i]) < 0.5);
        free(sums);
        oracle_forget(&s);
        nlist_free(&list);
    }
    CHECK(moving > 20 || share() > 4);
}

/* One contact of a chosen size. */
static int one_value(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)i;
    (void)j;
    (void)history;
    own[0] = *(const real *)user;
    other[0] = 1;
    return 1;
}

/* One value must stay below 2^40 units; NaN is never one. */
static void test_sum_overflow(void **state)
{
    static const real pos[6] = {0, 0, 0, (real)0.5, 0, 0};
    real const largest = (real)1099511627776.0; /* 2^40 */
    real const bad[] = {largest, -largest, oracle_beside(largest, 1), REAL_NAN, REAL_INFINITY,
        -REAL_INFINITY, REAL_LARGEST};
    real const good[] = {(real)1099511562240.0, (real)-1099511562240.0, 0, (real)0.75, (real)-0.75,
        (real)1.5, (real)-1.5};
    double const truncated[] = {1099511562240.0, -1099511562240.0, 0, 0, 0, 1, -1};
    int layout, half, mode, k;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++)
            for (mode = 0; mode <= NLIST_REDUCE; mode++) {
        nlist list = {0};
        nlist_desc d;
        nlist_sums how;
        real sums[2];
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = half;
        d.layout = (nlist_layout)layout;
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
        how.values = 1;
        how.mode = (nlist_mode)mode;
        how.unit = 1;
        for (k = 0; k < COUNT_OF(bad); k++) {
            real value = bad[k];
            sums[0] = 7, sums[1] = -7;
            CHECK_RESULT(nlist_sum(&list, &how, one_value, &value, sums), NLIST_SUM_OVERFLOW);
            CHECK(sums[0] == 7 && sums[1] == -7);
        }
        for (k = 0; k < COUNT_OF(good); k++) {
            real value = good[k];
            sums[0] = sums[1] = 0;
            CHECK_RESULT(nlist_sum(&list, &how, one_value, &value, sums), NLIST_OK);
            CHECK((double)sums[0] == truncated[k] && (double)sums[1] == (half ? 1 : truncated[k]));
        }
        nlist_free(&list);
    }
}

/* Without a unit NaN and Inf go the usual way. */
static void test_sum_without_unit(void **state)
{
    static const real pos[6] = {0, 0, 0, (real)0.5, 0, 0};
    real value = REAL_NAN, sums[2] = {0, 0};
    nlist list = {0};
    nlist_desc d;
    nlist_sums how;
    (void)state;
    memset(&d, 0, sizeof d);
    memset(&how, 0, sizeof how);
    d.radius = 1;
    d.half = 1;
    how.values = 1;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
    CHECK_RESULT(nlist_sum(&list, &how, one_value, &value, sums), NLIST_OK);
    CHECK(sums[0] != sums[0] && sums[1] == 1);
    nlist_free(&list);
}

/* History written in a contact function is what the next step finds. */
static int count_steps(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    int32_t steps;
    (void)user;
    (void)i;
    (void)j;
    memcpy(&steps, history, sizeof steps);
    steps++;
    memcpy(history, &steps, sizeof steps);
    own[0] = other[0] = (real)steps;
    return 1;
}

static void test_sum_writes_history(void **state)
{
    static const real pos[6] = {0, 0, 0, (real)0.5, 0, 0};
    int layout, half, mode, step;
    (void)state;
    for (layout = 0; layout < 4; layout++) for (half = 0; half < 2; half++)
            for (mode = 0; mode <= NLIST_REDUCE; mode++) {
        nlist list = {0};
        nlist_desc d;
        nlist_sums how;
        memset(&d, 0, sizeof d);
        d.radius = 1;
        d.half = half;
        d.history = 4;
        d.layout = (nlist_layout)layout;
        how.values = 1;
        how.mode = (nlist_mode)mode;
        how.unit = 0;
        for (step = 1; step <= 3; step++) {
            real sums[2] = {0, 0};
            CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
            CHECK_RESULT(nlist_sum(&list, &how, count_steps, NULL, sums), NLIST_OK);
            CHECK((double)sums[0] == step && (double)sums[1] == step);
        }
        nlist_free(&list);
    }
}
