/* left_out.c - a part of test_nlist.c: desc.skip_invalid. A list without the particles that are NaN
   or infinite is the list of finite ones in which masks forbid these.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { LEFT_OUT_MOST = 2600 };
enum { OUT_BRUTE, OUT_GRID, OUT_TREE, OUT_BOX, OUT_NEAREST, OUT_SOURCES };

typedef struct left_out_scene {
    int32_t n;
    real pos[3 * LEFT_OUT_MOST];        /* all finite */
    real given[3 * LEFT_OUT_MOST];      /* some are not */
    real radii[LEFT_OUT_MOST];
    uint32_t masks[LEFT_OUT_MOST];      /* 0: left out */
    int32_t first;
} left_out_scene;

static void left_out_run(nlist_task *task, void *context, int32_t tasks, void *user)
{
    (void)user;
    while (tasks-- > 0) task(context, tasks);
}

/* In the box 0 .. 1 along each axis. */
static void left_out_make(left_out_scene *s, const nlist_desc *d, int32_t n)
{
    static const real bad[] = {NAN, INFINITY, -INFINITY};
    int const share = roll(2) ? 4 : 1500;
    int32_t k;
    s->n = n;
    s->first = -1;
    for (k = 0; k < n * d->dim; k++) s->given[k] = s->pos[k] = between(0, 1);
    for (k = 0; k < n; k++) {
        s->masks[k] = roll(share) ? 1 : 0;
        s->radii[k] = between(0, d->radius / 4);
        if (s->masks[k]) continue;
        s->given[k * d->dim + roll(d->dim)] = bad[roll(3)];
        if (s->first < 0) s->first = k;
    }
}

static nlist_result left_out_build(nlist *list, const nlist_desc *d, const left_out_scene *s,
    const real *pos, int source)
{
    static const ugrid_method methods[] = {UGRID_COUNT, UGRID_SORT, UGRID_FIXED, UGRID_LIST};
    nlist_result result;
    ugrid grid = {0};
    lbvh tree = {0};
    ugrid_desc g;
    lbvh_desc t;
    nlist_box box;
    int a;
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    memset(&box, 0, sizeof box);
    for (a = 0; a < 3; a++) {
        g.max[a] = box.cell[a][a] = 1;
        g.periodic[a] = box.periodic[a] = d->periodic[a];
    }
    g.dim = t.dim = d->dim;
    g.cell = d->radius;
    g.method = methods[roll(4)];
    g.grow = g.skip_invalid = t.skip_invalid = 1;
    t.kind = LBVH_POINTS;
    if (source == OUT_BRUTE) return nlist_build_brute(list, d, pos, 0, s->n);
    if (source == OUT_BOX || source == OUT_NEAREST)
        return nlist_build_box(list, d, &box, pos, 0, s->n);
    if (source == OUT_GRID) {
        CHECK(ugrid_build(&grid, &g, pos, 0, s->n) == UGRID_OK);
        result = nlist_build_ugrid(list, d, &grid, pos, 0, s->n);
    } else {
        CHECK(lbvh_build(&tree, &t, pos, 0, s->n) == LBVH_OK);
        result = nlist_build_lbvh(list, d, &tree, pos, 0, s->n);
    }
    ugrid_free(&grid);
    lbvh_free(&tree);
    return result;
}

static void left_out_desc(nlist_desc *d, int source, int32_t n)
{
    int a;
    memset(d, 0, sizeof *d);
    d->dim = 2 + roll(2);
    d->radius = between((real)0.05, (real)0.2);
    d->skin = roll(2) ? d->radius / 8 : 0;
    d->layout = (nlist_layout)(roll(2) ? NLIST_COMPACT : NLIST_DYNAMIC);
    d->half = source != OUT_NEAREST && roll(2);
    d->nearest = source == OUT_NEAREST ? 1 + roll(5) : 0;
    d->rows = roll(3) ? 0 : n / 2 + 1;
    for (a = 0; a < d->dim; a++) {
        d->periodic[a] = roll(2);
        d->max[a] = 1;
    }
    if (roll(2)) {
        d->parallel.run = left_out_run;
        d->parallel.tasks = 5;
    }
}

/* The same rows, and no particle that was left out in them. */
static void left_out_compare(const nlist *list, const nlist *want, const left_out_scene *s)
{
    int32_t i;
    CHECK(list->total == want->total && list->bad_id == s->first);
    CHECK(list->row_count == want->row_count && list->rows_cut == want->rows_cut);
    for (i = 0; i < list->row_count; i++) {
        nlist_each e = nlist_of(list, i), w = nlist_of(want, i);
        int64_t sum = 0;
        int count = 0;
        while (nlist_next(&e)) {
            CHECK(s->masks[i] && s->masks[e.id]);
            sum += (int64_t)e.id * e.id;
            count++;
        }
        while (nlist_next(&w)) {
            sum -= (int64_t)w.id * w.id;
            count--;
        }
        CHECK(sum == 0 && count == 0);
    }
}

static void test_left_out(void **state)
{
    static left_out_scene s;
    int step, source;
    (void)state;
    for (step = 0; step < 60; step++) for (source = 0; source < OUT_SOURCES; source++) {
        nlist list = {0}, want = {0};
        nlist_desc d, masked;
        int32_t const n = step == 0 ? 1 : step % 5 == 4 && source ? LEFT_OUT_MOST : 1 + roll(120);
        left_out_desc(&d, source, n);
        if (n == LEFT_OUT_MOST) d.radius /= 2;
        left_out_make(&s, &d, n);
        if (roll(2)) d.radii = s.radii;
        masked = d;
        masked.masks = s.masks;
        CHECK_RESULT(left_out_build(&want, &masked, &s, s.pos, source), NLIST_OK);
        CHECK_RESULT(left_out_build(&list, &d, &s, s.given, source),
            s.first < 0 ? NLIST_OK : NLIST_NOT_FINITE);
        d.skip_invalid = 1;
        CHECK_RESULT(left_out_build(&list, &d, &s, s.given, source), NLIST_OK);
        left_out_compare(&list, &want, &s);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        if (source < OUT_BOX) CHECK_RESULT(nlist_verify(&list, &d, s.given, 0, 9, 1, NULL),
                NLIST_OK);
        if (d.skin > 0) {
            int32_t const some = roll(n);
            CHECK(!moved(&list, s.given, 0));
            s.given[some * d.dim] = s.masks[some] ? REAL_NAN : s.pos[some * d.dim];
            if (d.dim == 2 && !s.masks[some]) s.given[some * 2 + 1] = s.pos[some * 2 + 1];
            if (d.dim == 3 && !s.masks[some])
                memcpy(s.given + 3 * some, s.pos + 3 * some, 3 * sizeof(real));
            CHECK(moved(&list, s.given, 0)); /* one dies, or lives again */
        }
        nlist_free(&list);
        nlist_free(&want);
    }
}

/* What dies ends its contacts; a mesh is not touched by what is nowhere. */
static void test_left_out_ends_contacts(void **state)
{
    static const real triangle[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
    real pos[9] = {0, 0, 0, (real)0.1, 0, 0, (real)0.2, 0, 0};
    nlist list = {0}, walls = {0};
    nlist_mesh mesh;
    lbvh_desc t;
    lbvh tree = {0};
    nlist_desc d;
    int a;
    (void)state;
    memset(&d, 0, sizeof d);
    memset(&t, 0, sizeof t);
    memset(&mesh, 0, sizeof mesh);
    mesh.vertices = triangle;
    mesh.triangles = 1;
    t.kind = LBVH_TRIANGLES;
    CHECK(lbvh_build(&tree, &t, triangle, 0, 1) == LBVH_OK);
    d.radius = (real)0.15;
    d.half = d.events = d.skip_invalid = 1;
    d.history = 4;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 3), NLIST_OK);
    CHECK(list.total == 2 && list.bad_id == -1);
    for (a = 0; a < 3; a++) {
        pos[a] = a == 1 ? REAL_INFINITY : pos[a];
        CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 3), NLIST_OK);
        CHECK(list.total == (a ? 1 : 2) && list.event_count[NLIST_ENDED] == (a == 1));
    }
    d.half = d.events = d.history = 0;
    CHECK_RESULT(nlist_build_mesh(&walls, &d, &tree, &mesh, pos, 0, 3), NLIST_OK);
    CHECK(walls.bad_id == 0 && walls.total == 2);
    lbvh_free(&tree);
    nlist_free(&list);
    nlist_free(&walls);
}
