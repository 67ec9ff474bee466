/* thick.c - a part of test_nlist.c: walls with a thickness of their own, masks of walls, and lists
   of walls with a skin. The oracle is the distance to every triangle, in double.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef struct thick_wall { double q[3], s[3], d, gap; } thick_wall;

static double from_to(double low, double high) { return low + (high - low) * (double)wl_u(&dice); }

/* A point, an edge, a triangle or a rectangle somewhere in the cube 0 .. size. */
static void add_element(surface *s, int kind, double size, double length)
{
    int32_t v[4];
    double at[3], along[3], across[3];
    int k;
    for (k = 0; k < 3; k++) {
        at[k] = from_to(0, size);
        along[k] = from_to(-length, length);
        across[k] = from_to(-length, length);
    }
    for (k = 0; k < 4; k++) {
        double const a = k == 1 || k == 2, b = k >= 2;
        v[k] = add_vertex(s, at[0] + a * along[0] + b * across[0],
            at[1] + a * along[1] + b * across[1], at[2] + a * along[2] + b * across[2]);
    }
    if (kind == 0) add_triangle(s, v[0], v[0], v[0]);
    if (kind == 1) add_triangle(s, v[0], v[1], v[1]);
    if (kind >= 2) add_triangle(s, v[0], v[1], v[2]);
    if (kind == 3) add_triangle(s, v[0], v[2], v[3]);
}

/* Is wall t a contact of the particle at p? 1 yes, 0 no, -1 where rounding decides. */
static int is_thick_contact(const surface *s, const thick_wall *walls, const real *thickness,
    const uint32_t *masks, uint32_t mask, int32_t t, double reach)
{
    double const one = 3e-5 * (reach + 1), two = 4e-3 * (reach + 1);
    int unclear = fabs(walls[t].gap - reach) < one, feature;
    int32_t u;
    double q[3];
    if (walls[t].gap > reach + one || !(masks[t] & mask)) return 0;
    for (u = 0; u < triangles(s); u++) {
        double off;
        if (u == t || !(masks[u] & mask) || walls[u].gap > walls[t].gap + one) continue;
        off = nearest(s, u, walls[t].s, q, &feature) - (double)thickness[u];
        if (off <= one && walls[u].gap < walls[t].gap - one) return 0;
        unclear |= off < two;
    }
    return unclear ? -1 : 1;
}

static void find_walls(const surface *s, const real *thickness, const real *at, thick_wall *walls)
{
    double p[3];
    int32_t t;
    int feature, k;
    to_double(at, p);
    for (t = 0; t < triangles(s); t++) {
        thick_wall *w = &walls[t];
        double const own = (double)thickness[t];
        w->d = nearest(s, t, p, w->q, &feature);
        w->gap = w->d - own;
        for (k = 0; k < 3; k++)
            w->s[k] = w->gap <= 0 ? p[k] : w->q[k] + (p[k] - w->q[k]) * own / w->d;
    }
}

/* Row i against the oracle. Returns how many rows were certain. */
static int check_thick_row(const nlist *list, const surface *s, const real *thickness,
    const uint32_t *masks, uint32_t mask, int32_t i, const real *at, double reach)
{
    thick_wall walls[64];
    int listed[64] = {0}, certain = 1, touched = 0;
    nlist_each e = nlist_of(list, i);
    int32_t t;
    assert_true(triangles(s) <= 64);
    find_walls(s, thickness, at, walls);
    while (nlist_next(&e)) listed[nlist_key_triangle(e.id)]++;
    for (t = 0; t < triangles(s); t++) {
        int const is = is_thick_contact(s, walls, thickness, masks, mask, t, reach);
        CHECK(is < 0 ? listed[t] <= 1 : listed[t] == is);
        certain &= is >= 0;
        touched |= (masks[t] & mask) && walls[t].gap < reach - 1e-4;
    }
    CHECK(!touched || row_length(list, i) > 0);
    return certain;
}

/* Elements of all kinds that cross each other, each with its thickness and its mask. */
static void test_thick_walls(void **state)
{
    enum { N = 24 };
    int round, certain = 0, rows = 0, k;
    (void)state;
    for (round = 0; round < 60 / share() + 4; round++) {
        surface s = {0};
        nlist list = {0};
        nlist_desc d = wall_desc(round % 3 ? 0.1 : 0);
        real pos[3 * N], radii[2 * N], thickness[64], given[3 * 64];
        uint32_t masks[64], own[N];
        int const masked = round % 2;
        int32_t i, t;
        for (k = 0; k < 12; k++) add_element(&s, k % 4, 2, 0.7);
        hand_over(&s, round % FORMS);
        for (t = 0; t < triangles(&s); t++) {
            thickness[t] = given[3 * t] = t % 5 == 1 ? 0 : (real)from_to(0, round % 4 ? 0.2 : 1);
            given[3 * t + 1] = given[3 * t + 2] = REAL_NAN;
            masks[t] = masked ? 1u << wl_below(&dice, 3) | 8u : UINT32_MAX;
        }
        for (i = 0; i < 3 * N; i++) pos[i] = (real)from_to(-0.5, 2.5);
        for (i = 0; i < N; i++) {
            radii[2 * i] = (real)from_to(0.01, 0.3);
            radii[2 * i + 1] = -1;
            own[i] = masked ? 1u << i % 4 : UINT32_MAX;
        }
        d.radii = radii;
        d.radii_stride = 2 * sizeof(real);
        s.mesh.thickness = given;
        s.mesh.thickness_stride = 3 * sizeof(real);
        if (round % 5 == 2) s.mesh.thickest = 1;
        if (masked) d.masks = own, s.mesh.masks = masks;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, N), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (i = 0; i < N; i++, rows++)
            certain += check_thick_row(&list, &s, thickness, masks, own[i], i, pos + 3 * i,
                (double)(d.radius + radii[2 * i]));
        nlist_free(&list);
        drop_surface(&s);
    }
    CHECK(2 * certain > rows);
}

/* A thickness of 0 everywhere, and one thickness for all as `thickest`: the keys of a mesh without,
   in their order. */
static void test_no_thickness(void **state)
{
    real pos[3 * 40], none[2 * 64] = {0};
    int round, k;
    (void)state;
    for (round = 0; round < 8; round++) {
        surface s = {0};
        nlist with = {0}, without = {0};
        nlist_desc d = wall_desc(0.3);
        if (round % 2) add_floor(&s, 4, 4, 0.5, 0.2, hilly);
        else for (k = 0; k < 16; k++) add_element(&s, k % 4, 2, 0.7);
        for (k = 0; k < 3 * 40; k++) pos[k] = (real)from_to(0, 2) * (real)(k % 3 == 2 ? 0.2 : 1);
        hand_over(&s, round % FORMS);
        CHECK_RESULT(nlist_build_mesh(&without, &d, &s.tree, &s.mesh, pos, 0, 40), NLIST_OK);
        s.mesh.thickness = none;
        if (round % 4 >= 2) s.mesh.thickest = (real)0.125;
        CHECK_RESULT(nlist_build_mesh(&with, &d, &s.tree, &s.mesh, pos, 0, 40), NLIST_OK);
        CHECK(with.total == without.total && with.total > 0);
        for (k = 0; k < 40; k++) {
            nlist_each a = nlist_of(&with, k), b = nlist_of(&without, k);
            while (nlist_next(&a)) CHECK(nlist_next(&b) && a.id == b.id);
        }
        nlist_free(&with);
        nlist_free(&without);
        drop_surface(&s);
    }
}

/* By hand: over a rectangle one contact wherever the particle is; a thin wall beside a thick one is
   hidden by its round edge, and is not a little further on. */
static void test_thick_by_hand(void **state)
{
    surface s = {0};
    real thickness[4] = {0.25, 0.25, 0.25, 0.0625};
    int32_t x;
    (void)state;
    add_vertex(&s, 0, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 4, 4, 0);
    add_vertex(&s, 0, 4, 0);
    add_vertex(&s, 8, 0, 0);
    add_vertex(&s, 8, 4, 0);
    add_triangle(&s, 0, 1, 2);
    add_triangle(&s, 0, 2, 3);
    add_triangle(&s, 1, 1, 2);      /* an edge on the border of both */
    add_triangle(&s, 1, 4, 5);      /* thinner, behind it: it has the corner 1 of them only */
    hand_over(&s, INDEXED);
    s.mesh.thickness = thickness;
    for (x = -4; x < 36; x++) {     /* along y = 3, 1.25 above the plane: the sphere just touches */
        nlist list = {0};
        nlist_desc d = wall_desc(1);
        real p[3] = {0, 1.5, 1.125};
        p[0] = (real)x / 8;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        CHECK(row_length(&list, 0) == 1);
        nlist_free(&list);
    }
    drop_surface(&s);
}

static void test_bad_thickness(void **state)
{
    static real const bad[] = {(real)-0.5, REAL_NAN, REAL_INFINITY};
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(1);
    real p[3] = {0}, thickness[2] = {0.5, 0.5};
    int k;
    (void)state;
    add_element(&s, 3, 1, 1);
    hand_over(&s, LOOSE);
    s.mesh.thickness = thickness;
    for (k = 0; k < 3; k++) {
        thickness[1] = bad[k];
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_BAD_RADIUS);
        CHECK(list.bad_id == 1);
        s.mesh.thickest = bad[k];
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_BAD_RADIUS);
        s.mesh.thickest = 0;
    }
    thickness[1] = 1;
    s.mesh.thickest = (real)0.75;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_BAD_RADIUS);
    s.mesh.thickest = 1;
    s.mesh.thickness_stride = 3;
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_BAD_ARGUMENT);
    s.mesh.thickness_stride = sizeof(real);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
    CHECK(list.bad_id == -1);
    nlist_free(&list);
    drop_surface(&s);
}

/* Saves a list, and goes on with what was loaded. */
static void reload(nlist *list)
{
    nlist_desc const desc = list->desc;
    int64_t size = 0;
    unsigned char *bytes;
    CHECK_RESULT(nlist_save(list, NULL, 0, &size), NLIST_BUFFER_TOO_SMALL);
    bytes = NEW(unsigned char, size);
    CHECK_RESULT(nlist_save(list, bytes, size, &size), NLIST_OK);
    nlist_free(list);
    CHECK_RESULT(nlist_load(list, &desc, bytes, size), NLIST_OK);
    free(bytes);
}

/* With a skin, over many steps: in each the contacts of a list that is built in that step without
   one; each keeps its bytes while it lasts, as a table of particles and walls has them. The walls
   are too far apart for a contact to move on from one to another. */
static void test_thick_walls_with_a_skin(void **state)
{
    enum { N = 20, STEPS = 60, WALLS = 27 };
    static int32_t ages[N][WALLS];
    int64_t contacts = 0, ended = 0;
    int builds = 0, step, k;
    surface s = {0};
    nlist list = {0}, now = {0};
    nlist_desc d = wall_desc(0.05), plain;
    real pos[3 * N], radii[N], thickness[WALLS], q[3];
    (void)state;
    memset(ages, 0, sizeof ages);
    for (k = 0; k < WALLS; k++) {
        double const x = k % 3, y = k / 3 % 3, z = k / 9;
        int32_t const a = add_vertex(&s, x, y, z), b = add_vertex(&s, x + 0.2, y, z + 0.1),
            c = add_vertex(&s, x, y + 0.2, z);
        add_triangle(&s, a, k % 3 > 0 ? b : a, k % 3 == 0 ? a : k % 3 == 1 ? b : c);
        thickness[k] = k % 4 ? (real)from_to(0, 0.2) : 0;
    }
    for (k = 0; k < N; k++) radii[k] = (real)from_to(0.1, 0.3);
    for (k = 0; k < 3 * N; k++) pos[k] = (real)from_to(0, 2.2);
    hand_over(&s, INDEXED);
    s.mesh.thickness = thickness;
    d.radii = radii;
    plain = d;
    d.skin = (real)0.15;
    d.history = sizeof(int32_t);
    for (step = 0; step < STEPS; step++) {
        int32_t moved, i;
        CHECK_RESULT(nlist_moved(&list, pos, 0, &moved), NLIST_OK);
        if (moved) {
            CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, N), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            builds++;
        }
        if (step == STEPS / 3) reload(&list);
        CHECK_RESULT(nlist_build_mesh(&now, &plain, &s.tree, &s.mesh, pos, 0, N), NLIST_OK);
        for (i = 0; i < N; i++) {
            int touching[WALLS] = {0}, is[WALLS] = {0};
            nlist_each e = nlist_of(&list, i), o = nlist_of(&now, i);
            while (nlist_next(&o)) is[nlist_key_triangle(o.id)] = 1;
            while (nlist_next(&e)) {
                int32_t const t = nlist_key_triangle(e.id);
                touching[t] = nlist_mesh_touch(&list, &s.mesh, &e, pos + 3 * i,
                    d.radius + radii[i], q);
                if (touching[t]) CHECK(++*(int32_t *)e.history == ages[i][t] + 1);
            }
            for (k = 0; k < WALLS; k++) {
                CHECK(touching[k] == is[k]);
                contacts += is[k];
                ended += !is[k] && ages[i][k] > 0;
                ages[i][k] = is[k] ? ages[i][k] + 1 : 0;
            }
        }
        for (k = 0; k < 3 * N; k++)
            pos[k] += (real)(0.03 * (k / 3 % 2 ? sin(0.3 * step + k) : from_to(-1, 1)));
    }
    CHECK(contacts > STEPS && ended > 20 && builds > 1 && builds < STEPS / 2);
    nlist_free(&list);
    nlist_free(&now);
    drop_surface(&s);
}

/* A ball rolls over a mesh, within one list and over builds: one contact, that of a list without a
   skin; its history lasts from the first step, and no event says that it ended. */
static void test_rolling_with_a_skin(void **state)
{
    int contacts, step;
    (void)state;
    for (contacts = 0; contacts < 2; contacts++) {
        surface s = {0};
        nlist list = {0}, now = {0};
        nlist_desc d = wall_desc(0.5), plain;
        real p[3] = {0.7, 0.55, 0.5625}, thickness[128], q[3];
        int32_t t, moved, builds = 0, changes = 0, last = -1;
        add_floor(&s, 8, 8, 0.4, 0, flat);
        hand_over(&s, INDEXED);
        for (t = 0; t < triangles(&s); t++) thickness[t] = (real)0.125;
        s.mesh.thickness = thickness;
        plain = d;
        d.skin = (real)0.4;
        d.history = sizeof(int32_t);
        d.contacts = d.events = contacts;
        for (step = 1; step <= 60; step++) {
            nlist_each e, o;
            int32_t touching = 0;
            CHECK_RESULT(nlist_moved(&list, p, 0, &moved), NLIST_OK);
            if (moved) {
                CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
                CHECK(!contacts || (list.event_count[NLIST_ENDED] == 0 &&
                    list.event_count[NLIST_PERSISTED] == (builds > 1)));
                builds++;
            }
            CHECK_RESULT(nlist_build_mesh(&now, &plain, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
            o = nlist_of(&now, 0);
            CHECK(nlist_next(&o) && row_length(&now, 0) == 1);
            e = nlist_of(&list, 0);
            while (nlist_next(&e)) {
                if (!nlist_mesh_touch(&list, &s.mesh, &e, p, d.radius, q)) {
                    CHECK(*(int32_t *)e.history == 0 || touching == 0);
                    continue;
                }
                CHECK(nlist_key_triangle(e.id) == nlist_key_triangle(o.id));
                CHECK(++*(int32_t *)e.history == step);
                changes += nlist_key_triangle(e.id) != last;
                last = nlist_key_triangle(e.id);
                touching++;
            }
            CHECK(touching == 1);
            p[0] += (real)0.03;
            p[1] += (real)0.013;
        }
        CHECK(builds > 3 && builds < 20 && changes > 8);
        nlist_free(&list);
        nlist_free(&now);
        drop_surface(&s);
    }
}

/* The most calls for the closest point of a triangle that a step takes, in a row of m triangles
   around the tip of a cone. The ball comes down to the tip, rests there, rolls on to a face and
   around the cone, and is lifted off. In each step its contact is that of a list without a skin,
   and its history lasts. Above the tip, where all meet in one point: O(m). */
static int64_t calls_beside_a_tip(int m)
{
    int64_t most = 0;
    surface s = {0};
    nlist list = {0}, now = {0};
    nlist_desc d = wall_desc(0.5), plain;
    real p[3], q[3];
    int step, k, age = 0;
    int32_t const tip = add_vertex(&s, 0, 0, 1), first = tip + 1;
    for (k = 0; k < m; k++) add_vertex(&s, 4 * cos(k * 6.283185307179586 / m),
        4 * sin(k * 6.283185307179586 / m), 0);
    for (k = 0; k < m; k++) { /* 7 divides no m: numbers in another order than around the tip */
        int32_t const at = (int32_t)((int64_t)k * 7 % m);
        add_triangle(&s, first + at, first + (at + 1) % m, tip);
    }
    hand_over(&s, INDEXED);
    plain = d;
    d.skin = 2;
    d.history = sizeof(int32_t);
    for (step = 0; step < 16; step++) {
        static double const path[16][3] = {{0, 0, 1.6}, {0, 0, 1.49}, {0, 0, 1.45}, {0, 0, 1.45},
            {0.01, 0, 1.45}, {0.1, 0.01, 1.45}, {0.13, 0.02, 1.45}, {0.15, 0.03, 1.45},
            {0.15, 0.05, 1.45}, {0.14, 0.06, 1.45}, {0.13, 0.07, 1.45}, {0.05, 0.03, 1.45},
            {0, 0, 1.45}, {0, 0, 1.6}, {0, 0, 1.45}, {0, 0, 1.7}};
        nlist_each e, o;
        int32_t touching = 0, t = -1;
        for (k = 0; k < 3; k++) p[k] = (real)path[step][k];
        if (step == 0)
            CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        CHECK(row_length(&list, 0) == m);
        CHECK_RESULT(nlist_build_mesh(&now, &plain, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        CHECK(row_length(&now, 0) == (p[2] < (real)1.5));
        o = nlist_of(&now, 0);
        if (nlist_next(&o)) t = nlist_key_triangle(o.id), age++;
        else age = 0;
        e = nlist_of(&list, 0);
        closest_calls = 0;
        while (nlist_next(&e)) {
            if (!nlist_mesh_touch(&list, &s.mesh, &e, p, d.radius, q)) continue;
            CHECK(nlist_key_triangle(e.id) == t);
            CHECK(++*(int32_t *)e.history == age);
            touching++;
        }
        CHECK(touching == (t >= 0));
        CHECK(p[0] != 0 || closest_calls <= 8 * m);
        if (closest_calls > most) most = closest_calls;
    }
    nlist_free(&list);
    nlist_free(&now);
    drop_surface(&s);
    return most;
}

/* Not quadratic for a whole row of neighbours, also where a contact begins, moves on or ends:
   four times the row takes less than eight times the calls. */
static void test_touching_a_fan(void **state)
{
    (void)state;
    CHECK(calls_beside_a_tip(2000) < 8 * calls_beside_a_tip(500));
}
