/* rolling.c - a part of test_nlist.c: a sphere that rolls over a surface keeps its contact and
   its history over edges and vertices, and meets another mesh or one with fewer triangles.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A sphere that rolls over a floor in small steps: one contact, always, and what was written into
   it at the beginning stays. */
static void roll_over(surface *s, double radius, double height, double x, double y, double dx,
    double dy, int steps)
{
    nlist list = {0};
    nlist_desc d = wall_desc(radius);
    int step, changes = 0;
    int32_t key = -1;
    d.history = 13;
    d.events = 1;
    for (step = 0; step < steps; step++) {
        real p[3];
        nlist_each e;
        p[0] = (real)(x + dx * step), p[1] = (real)(y + dy * step), p[2] = (real)height;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s->tree, &s->mesh, p, 0, 1), NLIST_OK);
        e = nlist_of(&list, 0);
        CHECK(nlist_next(&e));
        CHECK(oracle_holds(e.history, 13, step ? 1 : 0));
        if (step == 0) oracle_write(e.history, 13, 1);
        changes += step && e.id != key;
        CHECK(list.event_count[NLIST_BEGUN] == (step == 0) &&
            list.event_count[NLIST_PERSISTED] == (step > 0));
        key = e.id;
        CHECK(!nlist_next(&e));
    }
    CHECK(changes >= 3);
    nlist_free(&list);
}

static void test_rolling(void **state)
{
    int form, k;
    (void)state;
    for (form = 0; form < FORMS; form++) {
        surface s = {0};
        add_floor(&s, 8, 8, 0.25, 0, flat);
        hand_over(&s, form);
        roll_over(&s, 0.3, 0.25, 0.3, 0.3, 0.01, 0.004, 140); /* across */
        /* along a row of edges, through their vertices */
        roll_over(&s, 0.3, 0.25, 0.25, 0.5, 1.0 / 128, 0, 180);
        /* along and across the diagonals */
        roll_over(&s, 0.3, 0.25, 0.25, 0.25, 1.0 / 128, 1.0 / 128, 180);
        roll_over(&s, 0.3, 0.0625, 1.7, 0.3, -0.003, 0.007, 180); /* deep in */
        drop_surface(&s);
    }
    for (k = 0; k < 200 / share() + 4; k++) { /* no pattern */
        surface s = {0};
        double const turn = 6.283185307179586 * (double)wl_u(&dice);
        add_floor(&s, 10, 10, 0.2, 0.15, flat);
        hand_over(&s, k % FORMS);
        roll_over(&s, 0.3, 0.05 + 0.2 * (double)wl_u(&dice), 1 - 0.6 * cos(turn),
            1 - 0.6 * sin(turn), 0.008 * cos(turn),
                  0.008 * sin(turn), 150);
        drop_surface(&s);
    }
}

/* Over a ridge: face, edge, face is one contact; it goes on as long as the sphere touches. */
static void test_rolling_over_a_ridge(void **state)
{
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(0.5);
    double angle;
    int step, seen[7] = {0, 0, 0, 0, 0, 0, 0};
    (void)state;
    add_vertex(&s, -4, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 0, 4, -4);
    add_vertex(&s, 0, -4, -4);
    add_triangle(&s, 2, 1, 0);
    add_triangle(&s, 0, 1, 3);
    hand_over(&s, INDEXED);
    d.history = 4;
    /* 0.4 above one face, around the ridge, down along the other */
    for (step = 0; step <= 400; step++) {
        double const way = (step - 200) / 100.0, bend = 0.7853981633974483;
        real p[3] = {0, 0, 0};
        nlist_each e;
        angle = way < -1 ? -bend : way > 1 ? bend : bend * way;
        p[1] = (real)(0.4 * sin(angle) +
            (fabs(way) > 1 ? 0.5 * (way - (way > 0 ? 1 : -1)) * cos(bend) : 0));
        p[2] = (real)(0.4 * cos(angle) - (fabs(way) > 1 ? 0.5 * (fabs(way) - 1) * sin(bend) : 0));
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        e = nlist_of(&list, 0);
        CHECK(nlist_next(&e));
        CHECK(oracle_holds(e.history, 4, step ? 9 : 0));
        if (step == 0) oracle_write(e.history, 4, 9);
        seen[nlist_key_feature(e.id)]++;
        CHECK(!nlist_next(&e));
    }
    CHECK(seen[FACE] > 100 && seen[EDGE_BC] > 150);
    nlist_free(&list);
    drop_surface(&s);
}

static double valley(double x, double y) { (void)x; return fabs(y - 1); }

/* In a valley: two contacts, and each side keeps its own. */
static void test_rolling_in_a_valley(void **state)
{
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(0.5);
    int step;
    (void)state;
    add_floor(&s, 16, 16, 0.125, 0, valley);
    hand_over(&s, LOOSE);
    d.history = 16;
    for (step = 0; step < 150; step++) {
        real p[3];
        nlist_each e;
        int sides = 0;
        p[0] = (real)(0.5 + step * 0.005), p[1] = (real)(1 + 0.1 * sin(step * 0.1)),
            p[2] = (real)0.55;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        for (e = nlist_of(&list, 0); nlist_next(&e);) {
            real q[3];
            int side;
            (void)nlist_mesh_closest(&s.mesh, nlist_key_triangle(e.id), p, q);
            side = q[1] > 1 ? 1 : 2;
            CHECK(!(sides & side) && oracle_holds(e.history, 16, step ? (uint32_t)side : 0));
            sides |= side;
            oracle_write(e.history, 16, (uint32_t)side);
        }
        CHECK(sides == 3 && list.total == 2);
    }
    nlist_free(&list);
    drop_surface(&s);
}

static double low(double x, double y) { (void)x; (void)y; return 0.4; }

/* From one wall to another that has nothing to do with it: the old contact ends, the new one knows
   nothing of it. */
static void test_another_wall(void **state)
{
    static const real places[4][3] = {{1, 1, (real)0.1}, {1, 1, (real)0.3}, {1, 1, (real)0.1},
        {(real)1.5, (real)0.5, (real)0.1}};
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(0.25);
    int step;
    (void)state;
    add_floor(&s, 4, 4, 0.7, 0, flat);
    add_floor(&s, 4, 4, 0.7, 0, low);
    hand_over(&s, INDEXED);
    d.history = 4;
    d.events = 1;
    for (step = 0; step < 4; step++) { /* floor, ceiling, floor, and far away on the floor */
        nlist_each e;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, places[step], 0, 1), NLIST_OK);
        e = nlist_of(&list, 0);
        CHECK(nlist_next(&e) && oracle_holds(e.history, 4, 0));
        oracle_write(e.history, 4, 6);
        CHECK(list.total == 1 && list.event_count[NLIST_BEGUN] == 1 &&
            list.event_count[NLIST_ENDED] == (step > 0));
        CHECK(list.event_count[NLIST_PERSISTED] == 0);
        if (step)
            CHECK(oracle_holds(nlist_history_before(&list, list.event[NLIST_ENDED][0].entry), 4,
                6));
    }
    nlist_free(&list);
    drop_surface(&s);
}

/* A mesh with fewer triangles than at the last build: the key of a removed triangle is passed on to
   no other one, although its corners are still in memory, behind those of the mesh. */
static void test_fewer_triangles(void **state)
{
    real corners[18] = {9, 0, 0, 12, 0, 0, 9, 3, 0, /* and, under the particle: */ 0, 0, 0, 3, 0, 0,
        0, 3, 0};
    static const real p[3] = {(real)0.5, (real)0.5, (real)0.25};
    nlist list = {0};
    nlist_desc d = wall_desc(0.5);
    lbvh tree = {0};
    lbvh_desc t;
    nlist_mesh mesh;
    nlist_each e;
    (void)state;
    memset(&t, 0, sizeof t);
    memset(&mesh, 0, sizeof mesh);
    t.kind = LBVH_TRIANGLES;
    d.history = 4;
    d.events = 1;
    mesh.vertices = corners;
    mesh.triangles = 2;
    CHECK(lbvh_build(&tree, &t, corners, 0, 2) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, p, 0, 1), NLIST_OK);
    e = nlist_of(&list, 0);
    CHECK(list.total == 1 && list.triangles == 2 && nlist_next(&e) && e.id == nlist_key(1, FACE));
    oracle_write(e.history, 4, 6);
    /* the first moves to where the second was, which goes */
    memcpy(corners, corners + 9, 9 * sizeof *corners);
    mesh.triangles = 1;
    CHECK(lbvh_build(&tree, &t, corners, 0, 1) == LBVH_OK);
    CHECK_RESULT(nlist_build_mesh(&list, &d, &tree, &mesh, p, 0, 1), NLIST_OK);
    e = nlist_of(&list, 0);
    CHECK(list.total == 1 && list.triangles == 1 && nlist_next(&e) && e.id == nlist_key(0, FACE));
    CHECK(oracle_holds(e.history, 4, 0) && list.event_count[NLIST_BEGUN] == 1 &&
        list.event_count[NLIST_ENDED] == 1);
    nlist_free(&list);
    lbvh_free(&tree);
}

/* A sphere that touches all six walls of a cube, each of many triangles, and moves. Each contact
   passes to other triangles, at any place in the row, and keeps the bytes that it got at the
   beginning. */
static void test_six_walls(void **state)
{
    enum { SQUARES = 8, OF_WALL = 2 * SQUARES * SQUARES };
    surface s = {0};
    nlist list = {0};
    nlist_desc d = wall_desc(1.125);
    int32_t was[6] = {-1, -1, -1, -1, -1, -1}, place, i;
    int step, wall, wandered = 0, wandered_behind = 0;
    (void)state;
    for (wall = 0; wall < 6; wall++) {
        int32_t const first = (int32_t)(arrlen(s.vertex) / 3);
        add_floor(&s, SQUARES, SQUARES, 0.25, 0.1, flat);
        /* stand it up, along axis wall / 2, on one side or the other */
        for (i = first; i < (int32_t)(arrlen(s.vertex) / 3); i++) {
            real *const v = s.vertex + 3 * i, x = v[0], y = v[1];
            v[wall / 2] = (real)(2 * (wall % 2));
            v[(wall / 2 + 1) % 3] = x;
            v[(wall / 2 + 2) % 3] = y;
        }
    }
    hand_over(&s, LOOSE);
    d.history = 4;
    for (step = 0; step < 120; step++) {
        int32_t order[6], now[6];
        real p[3];
        nlist_each e = nlist_of(&list, 0);
        for (place = 0; nlist_next(&e); place++) order[e.id / 8 / OF_WALL] = place;
        for (i = 0; i < 3; i++) p[i] = (real)(1 + 0.06 * sin(0.05 * (i + 2) * step + i));
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 1), NLIST_OK);
        CHECK(list.total == 6);
        e = nlist_of(&list, 0);
        while (nlist_next(&e)) {
            wall = e.id / 8 / OF_WALL;
            CHECK(oracle_holds(e.history, 4, step ? (uint32_t)wall + 1 : 0));
            if (step == 0) oracle_write(e.history, 4, (uint32_t)wall + 1);
            now[wall] = e.id;
            wandered += step && was[wall] != e.id;
            wandered_behind += step && was[wall] != e.id && order[wall] >= 2;
        }
        memcpy(was, now, sizeof was);
    }
    CHECK(wandered > 10 && wandered_behind > 5);
    nlist_free(&list);
    drop_surface(&s);
}

/* Many spheres that move at random over hills. A key that was there keeps its bytes; a new one has
   zeros, or the bytes of an ended contact of the same particle, which no other contact has. */
static void check_wandering(const nlist *list, const oracle_snapshot *was)
{
    int32_t i;
    int64_t first = 0, k;
    for (i = 0; i < list->n; i++) {
        int64_t const next = first + was->counts[i];
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            int64_t same_key = -1, same_bytes = -1;
            nlist_each f = nlist_of(list, i);
            for (k = first; k < next; k++) {
                if (was->ids[k] == e.id) same_key = k;
                if (same(was->history + 8 * k, e.history, 8)) same_bytes = k;
            }
            if (same_key >= 0) CHECK(same_bytes == same_key);
            else if (same_bytes < 0) CHECK(oracle_holds(e.history, 8, 0));
            else CHECK(nlist_find(list, i, was->ids[same_bytes]) < 0);
            while (same_bytes >= 0 && nlist_next(&f))
                CHECK(f.entry == e.entry || !same(f.history, e.history, 8));
        }
        first = next;
    }
}

static void test_random_moves(void **state)
{
    int const rounds = 40 / share() + 2;
    int64_t wandered = 0;
    int round, step;
    (void)state;
    for (round = 0; round < rounds; round++) {
        surface s = {0};
        nlist list = {0};
        nlist_desc d = wall_desc(0.3);
        int32_t const n = 25;
        real *pos = NEW(real, 3 * n);
        uint32_t stamp = 0;
        int32_t i;
        add_floor(&s, 8, 8, 0.25, 0.1, round % 2 ? hilly : flat);
        hand_over(&s, round % FORMS);
        d.history = 8;
        d.events = 1;
        for (i = 0; i < 3 * n; i++) pos[i] = i % 3 < 2 ? between(0, 2) : between(0, (real)0.4);
        for (step = 0; step < 60; step++) {
            oracle_snapshot was;
            oracle_take(&was, &list);
            for (i = 0; i < 3 * n; i++) pos[i] += between((real)-0.02, (real)0.02);
            CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, n), NLIST_OK);
            CHECK_RESULT(nlist_validate(&list), NLIST_OK);
            CHECK(list.event_count[NLIST_BEGUN] + list.event_count[NLIST_PERSISTED] == list.total);
            if (step) check_wandering(&list, &was);
            for (i = 0; i < n; i++) {
                nlist_each e = nlist_of(&list, i);
                for (; nlist_next(&e); oracle_write(e.history, 8, ++stamp)) {
                    int64_t k, first = 0;
                    int32_t before;
                    for (before = 0; step && before < i; before++) first += was.counts[before];
                    for (k = first; step && k < first + was.counts[i] && was.ids[k] != e.id; k++) {}
                    wandered += step && k == first + was.counts[i] &&
                        !oracle_holds(e.history, 8, 0);
                }
            }
            oracle_drop_snapshot(&was);
        }
        free(pos);
        nlist_free(&list);
        drop_surface(&s);
    }
    CHECK(wandered > rounds * 20);
}
