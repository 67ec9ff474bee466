/* world_casts.c - a part of test_lbvh_world.c: casts against slabs, and against the distance from a
   segment to a box, found by halving intervals in double; by hand; bad numbers.
   SPDX-License-Identifier: MIT OR Unlicense */

/* What is swept: the box around it, and of a sphere or capsule the segment and the radius. */
typedef struct swept {
    real box[6], vector[3], end[2][3], radius;
    int dim, round;
} swept;

/* Whether a box, moved along a vector for t in 0 .. 1, meets another one that is larger by `more`:
   slabs, in double. */
static int sweep_meets(const swept *s, const lbvh_node *node, double more)
{
    double begin = 0, end = 1;
    int a;
    for (a = 0; a < s->dim; a++) {
        double const low = (double)node->min[a] - more - (double)s->box[s->dim + a],
                     high = (double)node->max[a] + more - (double)s->box[a],
                     along = (double)s->vector[a];
        double const in = along > 0 ? low / along : high / along,
                     out = along > 0 ? high / along : low / along;
        if (along == 0 && (low > 0 || high < 0)) return 0;
        if (along == 0) continue;
        if (in > begin) begin = in;
        if (out < end) end = out;
    }
    return begin <= end;
}

/* The distance from a box to the segment's point k, at t. */
static double point_away(const swept *s, const lbvh_node *node, double t, double k)
{
    double sum = 0;
    int a;
    for (a = 0; a < s->dim; a++) {
        double const x = (1 - k) * (double)s->end[0][a] + k * (double)s->end[1][a] +
                         t * (double)s->vector[a],
                     low = (double)node->min[a] - x, high = x - (double)node->max[a],
                     away = low > 0 ? low : high > 0 ? high : 0;
        sum += away * away;
    }
    return sqrt(sum);
}

/* And to the whole segment: a convex function of k, so the range of the least is cut in three. */
static double segment_away(const swept *s, const lbvh_node *node, double t)
{
    double first = 0, last = 1;
    int cut, point = same(s->end[0], s->end[1], sizeof s->end[0]);
    for (cut = 0; cut < 50 && !point; cut++) {
        double const l = first + (last - first) / 3, r = last - (last - first) / 3;
        if (point_away(s, node, t, l) > point_away(s, node, t, r)) first = l;
        else last = r;
    }
    return point_away(s, node, t, point ? 0 : (first + last) / 2);
}

/* How near the shape comes to a box, less its radius; *t: where it first touches. */
static double nearest_pass(const swept *s, const lbvh_node *node, double *t)
{
    double const radius = (double)s->radius;
    double first = 0, last = 1, least;
    int cut;
    for (cut = 0; cut < 50; cut++) {
        double const l = first + (last - first) / 3, r = last - (last - first) / 3;
        if (segment_away(s, node, l) > segment_away(s, node, r)) first = l;
        else last = r;
    }
    last = (first + last) / 2;
    least = segment_away(s, node, last) - radius;
    if (segment_away(s, node, 1) - radius < least) last = 1;
    if (segment_away(s, node, 1) - radius < least) least = segment_away(s, node, 1) - radius;
    *t = 0;
    if (segment_away(s, node, 0) <= radius) return segment_away(s, node, 0) - radius;
    for (cut = 0, first = 0; cut < 50; cut++) {
        double const middle = (first + last) / 2;
        if (segment_away(s, node, middle) > radius) first = middle;
        else last = middle;
    }
    *t = last;
    return least;
}

/* A box that a round shape was said to touch at t, or not to touch. */
static void check_touch(const swept *s, const lbvh_node *node, int found, real t, double slack)
{
    double at;
    double const radius = (double)s->radius, margin = nearest_pass(s, node, &at);
    assert_true(found || margin > -slack);
    if (!found) return;
    assert_true(margin < slack);
    assert_true(segment_away(s, node, (double)t) <= radius + slack);
    if (t > 0) assert_true(segment_away(s, node, (double)t) >= radius - slack);
    assert_true(segment_away(s, node, ((double)t + at) / 2) >= radius - slack || at == 0);
    if (at == 0 && margin < -slack) assert_true(t == 0);
}

static void set_round(swept *s, const real *a, const real *b, real radius)
{
    int x;
    s->round = 1;
    s->radius = radius;
    for (x = 0; x < s->dim; x++) {
        s->end[0][x] = a[x];
        s->end[1][x] = b[x];
        s->box[x] = (a[x] < b[x] ? a[x] : b[x]) - radius;
        s->box[s->dim + x] = (a[x] < b[x] ? b[x] : a[x]) + radius;
    }
}

/* One of the casts, and what it sweeps. */
static lbvh_world_cast random_cast(model *m, swept *s)
{
    int const dim = m->desc.dim;
    real const radius = unit(m) / 10;
    real middle[3], other[3];
    int a;
    uint32_t const kind = chance(m, 5);
    memset(s, 0, sizeof *s);
    s->dim = dim;
    random_box(m, s->box);
    for (a = 0; a < dim; a++) {
        s->vector[a] = chance(m, 6) ? 2 * unit(m) - 1 : 0;
        middle[a] = s->box[a];
        other[a] = kind == 4 ? s->box[dim + a] : s->box[a];
        if (kind < 2) s->box[dim + a] = s->box[a];
    }
    if (kind > 2) set_round(s, middle, other, radius);
    if (kind == 0) return lbvh_world_ray(&m->world, middle, s->vector, 1);
    if (kind == 2) return lbvh_world_cast_box(&m->world, s->box, s->vector);
    if (kind == 3) return lbvh_world_cast_sphere(&m->world, middle, radius, s->vector);
    if (kind == 4) return lbvh_world_cast_capsule(&m->world, middle, other, radius, s->vector);
    for (a = 0; a < dim; a++) {
        other[a] = middle[a] + s->vector[a];
        s->vector[a] = other[a] - middle[a];
    }
    return lbvh_world_segment(&m->world, middle, other);
}

/* Slabs decide for boxes; what a round shape touches is among that, and a few are looked at. */
static void check_cast(model *m)
{
    double const slack = 1e-5;
    unsigned char found[MOST];
    real t[MOST], first = 2;
    swept s;
    lbvh_world_cast cast = random_cast(m, &s), closest;
    lbvh_filter const wanted = random_filter(m);
    int i;
    memset(found, 0, sizeof found);
    cast.filter = wanted; /* 0: all bits */
    if (chance(m, 2)) cast.fit = LBVH_FAT;
    closest = cast;
    for (; lbvh_next_cast(&cast); found[cast.index]++) {
        assert_true(cast.user == m->mobs[cast.index].user && cast.t >= 0 && cast.t <= 1);
        t[cast.index] = cast.t;
        if (cast.t < first) first = cast.t;
    }
    while (lbvh_next_cast(&closest)) closest.t_max = closest.t;
    assert_true(first > 1 ? closest.index < 0 : closest.t_max == first);
    for (i = 0; i < MOST; i++) {
        const lbvh_node *node = &m->world.box[2 * i + (cast.fit == LBVH_FAT)];
        int const may = m->mobs[i].id && allowed(m->mobs[i].filter, cast.filter);
        int const meets = may && sweep_meets(&s, node, slack);
        assert_true(found[i] <= meets);
        if (!s.round) assert_true(found[i] >= (may && sweep_meets(&s, node, -slack)));
        else if (meets && (m->dice + (uint32_t)i) % 32 == 0)
            check_touch(&s, node, found[i], found[i] ? t[i] : 0, slack);
    }
}

/* ------------------------------------------------------------------------------------------------
   Spheres and capsules beside a few boxes, in several units of length
   ------------------------------------------------------------------------------------------------
   */

enum { BOXES = 9 };

static lbvh_world world_of_boxes(int dim, const real *boxes, int n)
{
    lbvh_world world;
    lbvh_world_desc desc;
    lbvh_id id;
    int i;
    memset(&world, 0, sizeof world);
    memset(&desc, 0, sizeof desc);
    desc.dim = dim;
    CHECK_RESULT(lbvh_world_begin(&world, &desc), LBVH_OK);
    for (i = 0; i < n; i++)
        CHECK_RESULT(lbvh_world_insert(&world, boxes + 2 * dim * i, NULL, LBVH_FIXED, 0, &id),
                     LBVH_OK);
    CHECK_RESULT(lbvh_world_update(&world), LBVH_OK);
    return world;
}

/* Some along an axis, some without length, radius or motion. */
static void random_round(model *m, swept *s, real scale)
{
    uint32_t const special = chance(m, 8);
    real a[3], b[3];
    int x;
    memset(s, 0, sizeof *s);
    s->dim = m->desc.dim;
    for (x = 0; x < s->dim; x++) {
        a[x] = scale * (2 * unit(m) - (real)0.5);
        b[x] = special < 3 ? a[x] : a[x] + scale * (unit(m) - (real)0.5);
        if (special == 3 && x > 0) b[x] = a[x];
        s->vector[x] = special == 4 ? 0 : scale * (4 * unit(m) - 2);
        if (special == 5 && x == 1) s->vector[x] = 0;
    }
    set_round(s, a, b, special % 2 ? scale * unit(m) / 4 : special ? scale / 8 : 0);
}

static void test_round_casts(void **state)
{
    static const real scales[] = {1, (real)1e-6, (real)1e6, (real)1e-15, (real)1e15};
    int const cases = small_run() ? 10 : 60;
    int dim, k, i, touched = 0, passed = 0;
    (void)state;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < cases * COUNT_OF(scales); k++) {
            real const scale = scales[k % COUNT_OF(scales)];
            double const slack = (IS_FLOAT ? 2e-6 : 1e-9) * (double)scale;
            real boxes[6 * BOXES], t[BOXES];
            int found[BOXES];
            model m;
            swept s;
            lbvh_world world;
            lbvh_world_cast cast;
            memset(&m, 0, sizeof m);
            memset(found, 0, sizeof found);
            m.desc.dim = dim;
            m.dice = (uint32_t)(k * 7 + dim);
            for (i = 0; i < BOXES; i++) random_box(&m, boxes + 2 * dim * i);
            for (i = 0; i < 2 * dim * BOXES; i++) boxes[i] *= scale;
            random_round(&m, &s, scale);
            world = world_of_boxes(dim, boxes, BOXES);
            cast = lbvh_world_cast_capsule(&world, s.end[0], s.end[1], s.radius, s.vector);
            for (; lbvh_next_cast(&cast); found[cast.index]++) t[cast.index] = cast.t;
            for (i = 0; i < BOXES; i++) {
                assert_true(found[i] <= 1);
                check_touch(&s, &world.box[2 * i], found[i], found[i] ? t[i] : 0, slack);
                touched += found[i];
                passed += !found[i] && sweep_meets(&s, &world.box[2 * i], 0);
            }
            lbvh_world_free(&world);
        }
    assert_true(touched > cases && passed > cases / 8); /* their boxes would touch */
}

/* The t of a capsule and the only box, -1: it passes. */
static double cast_at(const lbvh_world *world, const real *a, const real *b, double radius,
                      const real *vector)
{
    lbvh_world_cast cast = lbvh_world_cast_capsule(world, a, b, (real)radius, vector);
    return lbvh_next_cast(&cast) ? (double)cast.t : -1;
}

/* One box, 0 to 1. */
static void test_casts_by_hand(void **state)
{
    static const struct {
        real a[3], b[3], vector[3];
        double radius, t;
    } hands[] = {
        { {-5, (real)0.5, (real)0.5}, {-5, (real)0.5, (real)0.5}, {8, 0, 0}, 1, 0.5 },  /* face */
        { {-3, -4, (real)0.5}, {-3, -4, (real)0.5}, {3, 4, 0}, 1, 0.8 },        /* an edge */
        { {-2, -4, -4}, {-2, -4, -4}, {2, 4, 4}, 3, 0.5 },                      /* a corner */
        { {-3, (real)-0.3, (real)0.5}, {-3, (real)-0.3, (real)0.5}, {4, 4, 0}, 1, -1 }, /* past */
        { {-3, (real)-2.25, 0}, {-3, 4, 0}, {4, 0, 0}, 1, 0.5 },        /* lengthwise on a face */
        { {-3, -1, (real)0.5}, {-1, -3, (real)0.5}, {4, 4, 0}, 0, 0.5 },  /* broadside, an edge */
        { {-1, 2, -1}, {2, -1, -1}, {0, 0, 4}, (real)0.5, 0.125 },      /* across a face */
        { {(real)0.5, (real)0.5, (real)0.5}, {9, 9, 9}, {1, 1, 1}, 1, 0 },      /* inside */
        { {-1, -1, -1}, {2, 2, 2}, {0, 0, 0}, 0, 0 },                   /* through it, at rest */
        { {-1, 0, 0}, {-1, 0, 0}, {0, 0, 0}, 1, 0 },                    /* touches, at rest */
        { {-3, 0, 0}, {-3, 0, 0}, {0, 0, 0}, 1, -1 },                   /* away, at rest */
        { {-3, 0, 0}, {-3, 0, 0}, {2, 0, 0}, 1, 1 },                    /* just reaches it */
        { {-3, 2, 0}, {-3, 2, 0}, {6, 0, 0}, 1, 0.5 },                  /* grazes a face */
        { {-3, 0, 0}, {-3, 0, 0}, {-1, 0, 0}, 1, -1 },                  /* flies off */
    };
    real const box[6] = {0, 0, 0, 1, 1, 1};
    lbvh_world world = world_of_boxes(3, box, 1);
    int k;
    (void)state;
    for (k = 0; k < COUNT_OF(hands); k++) {
        double const got = cast_at(&world, hands[k].a, hands[k].b, hands[k].radius,
                                   hands[k].vector),
                     swapped = cast_at(&world, hands[k].b, hands[k].a, hands[k].radius,
                                       hands[k].vector);
        if (fabs(got - hands[k].t) > 1e-6 || fabs(swapped - hands[k].t) > 1e-6)
            print_error("case %d: t %.9g, %.9g, not %g\n", k, got, swapped, hands[k].t);
        assert_true(fabs(got - hands[k].t) <= 1e-6 && fabs(swapped - hands[k].t) <= 1e-6);
    }
    lbvh_world_free(&world);
}

/* NaN, infinity and negative radii find nothing; the largest numbers are no trouble; a sphere
   without radius is a ray, one that does not touch at t_max is not found. */
static void test_bad_casts(void **state)
{
    real const box[6] = {0, 0, 0, 1, 1, 1}, bad[3] = {REAL_NAN, REAL_INFINITY, -REAL_INFINITY};
    lbvh_world world = world_of_boxes(3, box, 1);
    real numbers[10] = {0, 0, 0, 1, 1, 1, 1, 1, 1, 1};  /* both ends, vector, radius */
    real const far[3] = {REAL_LARGEST, -REAL_LARGEST, REAL_LARGEST}, zero[3] = {0, 0, 0},
               back[3] = {-REAL_LARGEST, REAL_LARGEST, -REAL_LARGEST};
    lbvh_world_cast cast, ray;
    int k, b;
    (void)state;
    assert_true(cast_at(&world, numbers, numbers + 3, 1, numbers + 6) == 0);
    assert_true(cast_at(&world, numbers, numbers + 3, -1, numbers + 6) == -1);
    for (k = 0; k < 10; k++)
        for (b = 0; b < 3; b++) {
            real const kept = numbers[k];
            numbers[k] = bad[b];
            assert_true(cast_at(&world, numbers, numbers + 3, (double)numbers[9], numbers + 6) ==
                        -1);
            numbers[k] = kept;
        }
    assert_true(cast_at(&world, far, far, 0, back) == 1);
    assert_true(cast_at(&world, far, far, 1, far) == -1);
    assert_true(cast_at(&world, far, zero, (double)REAL_LARGEST, far) == 0);
    assert_true(cast_at(&world, zero, far, 0, zero) == 0);
    for (k = 0; k < 40; k++) {
        real const from[3] = {-2, (real)(k % 8) / 4, (real)0.5}, way[3] = {4, (real)k / 20, 0};
        ray = lbvh_world_ray(&world, from, way, 1);
        cast = lbvh_world_cast_sphere(&world, from, 0, way);
        b = lbvh_next_cast(&ray);
        assert_int_equal(lbvh_next_cast(&cast), b);
        if (b) assert_true(fabs((double)(cast.t - ray.t)) < 1e-6);
        cast = lbvh_world_cast_sphere(&world, from, 1, way);
        cast.t_max = (real)0.2;
        assert_int_equal(lbvh_next_cast(&cast), 0);
    }
    lbvh_world_free(&world);
}

/* Two boxes that are touched at the same t: shortening t_max to it loses neither, whatever rounding
   does to where the boxes around are entered. */
static void test_casts_that_tie(void **state)
{
    real const boxes[8] = {0, -1, 1, 0, 0, 0, 1, 1};
    lbvh_world world = world_of_boxes(2, boxes, 2);
    wl_random random = wl_seed(5);
    int k, found;
    (void)state;
    for (k = 0; k < 500; k++) {
        real const centre[2] = {(real)(-3 - wl_u(&random)), 0},
                   vector[2] = {(real)(4 + wl_u(&random)), 0};
        lbvh_world_cast cast =
            lbvh_world_cast_sphere(&world, centre, (real)wl_u(&random), vector);
        for (found = 0; lbvh_next_cast(&cast); found++) cast.t_max = cast.t;
        assert_int_equal(found, 2);
    }
    lbvh_world_free(&world);
}
