/* walls.c - a part of test_nlist.c: contacts of particles with triangles: cases that are worked
   out by hand, and random surfaces.
   SPDX-License-Identifier: MIT OR Unlicense */

/* One triangle: face, edges, corners, too far; and exactly at the distance. */
static void test_one_triangle(void **state)
{
    surface s = {0};
    (void)state;
    add_vertex(&s, 0, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 0, 4, 0);
    add_triangle(&s, 0, 1, 2);
    check_keys(&s, 1, 1, 1, 0.5, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 1, 1, -0.5, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 1, 1, 1, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 1, 1, 1.01, -1, -1, -1);
    check_keys(&s, 1, 2, -1, 0, nlist_key(0, EDGE_AB), -1, -1);
    check_keys(&s, 1, 2, -1.01, 0, -1, -1, -1);
    check_keys(&s, 1, 2.5, 2.5, 0.25, nlist_key(0, EDGE_BC), -1, -1);
    check_keys(&s, 1, -0.5, 2, 0, nlist_key(0, EDGE_CA), -1, -1);
    check_keys(&s, 1, -0.5, -0.5, 0, nlist_key(0, VERTEX_A), -1, -1);
    check_keys(&s, 1, 4.5, -0.5, 0.5, nlist_key(0, VERTEX_B), -1, -1);
    check_keys(&s, 1, -0.5, 4.5, 0.5, nlist_key(0, VERTEX_C), -1, -1);
    check_keys(&s, 1, -0.75, -0.75, 0, -1, -1, -1);
    drop_surface(&s);
}

/* Two triangles make a square: its diagonal is no place of its own; on it the first has the
   contact. */
static void test_shared_edge(void **state)
{
    surface s = {0};
    (void)state;
    add_vertex(&s, 0, 0, 0);
    add_vertex(&s, 4, 0, 0);
    add_vertex(&s, 4, 4, 0);
    add_vertex(&s, 0, 4, 0);
    add_triangle(&s, 0, 1, 2);
    add_triangle(&s, 0, 2, 3);
    check_keys(&s, 1, 2, 2, 0.5, nlist_key(0, EDGE_CA), -1, -1);
    check_keys(&s, 1, 2.25, 2, 0.5, nlist_key(0, FACE), -1, -1);
    check_keys(&s, 1, 2, 2.25, 0.5, nlist_key(1, FACE), -1, -1);
    check_keys(&s, 1, 4.5, 4.5, 0.25, nlist_key(0, VERTEX_C), -1, -1);
    check_keys(&s, 1, -0.5, -0.5, 0.25, nlist_key(0, VERTEX_A), -1, -1);
    check_keys(&s, 1, -0.5, 2, 0.25, nlist_key(1, EDGE_CA), -1, -1);
    drop_surface(&s);
}

/* Six around one vertex, flat and as a cone, and as a hole. */
static void test_fan(void **state)
{
    int shape, k;
    (void)state;
    for (shape = -1; shape <= 1; shape++) {
        surface s = {0};
        int32_t first, centre = add_vertex(&s, 0, 0, 0.5 * shape);
        for (k = 0; k < 6; k++)
            add_vertex(&s, 4 * cos(k * 1.0471975511965976), 4 * sin(k * 1.0471975511965976), 0);
        first = centre + 1;
        for (k = 0; k < 6; k++) add_triangle(&s, first + k, centre, first + (k + 1) % 6);
        if (shape >= 0) check_keys(&s, 1, 0, 0, 0.75 + 0.5 * shape, nlist_key(0, VERTEX_B), -1, -1);
        if (shape == 0) check_keys(&s, 1, 0, 0, 1, nlist_key(0, VERTEX_B), -1, -1);
        check_keys(&s, 1, 0, 0, 1.25 + 0.5 * shape, -1, -1, -1);
        drop_surface(&s);
    }
}

/* A roof and a gutter: over the ridge one contact, the ridge itself; in the gutter the two faces
   and not the line. */
static void test_roof_and_gutter(void **state)
{
    int gutter;
    (void)state;
    for (gutter = 0; gutter < 2; gutter++) {
        surface s = {0};
        double const z = gutter ? 2 : -2;
        add_vertex(&s, -4, 0, 0); /* the line */
        add_vertex(&s, 4, 0, 0);
        add_vertex(&s, 0, 4, z);
        add_vertex(&s, 0, -4, z);
        add_triangle(&s, 2, 1, 0);
        add_triangle(&s, 0, 1, 3);
        if (gutter) {
            check_keys(&s, 1, 0, 0, 0.75, nlist_key(0, FACE), nlist_key(1, FACE), -1);
            check_keys(&s, 1, 0, 0.25, 0.75, nlist_key(0, FACE), nlist_key(1, FACE), -1);
            /* from below it is a ridge */
            check_keys(&s, 1, 0, 0.25, -0.5, nlist_key(0, EDGE_BC), -1, -1);
        } else {
            check_keys(&s, 1, 0, 0, 0.75, nlist_key(0, EDGE_BC), -1, -1);
            check_keys(&s, 1, 0, 0.125, 0.75, nlist_key(0, EDGE_BC), -1, -1);
            check_keys(&s, 1, 0, 1, 0.25, nlist_key(0, FACE), -1, -1);
            check_keys(&s, 1, 0, -1, 0.25, nlist_key(1, FACE), -1, -1);
            check_keys(&s, 1, 0, 0, -0.75, nlist_key(0, FACE), nlist_key(1, FACE), -1);
        }
        drop_surface(&s);
    }
}

/* The inner corner of a box, walls of two triangles each: three contacts, wherever in the corner.
   And its outer side: one. */
static void test_corner(void **state)
{
    surface s = {0};
    int a;
    (void)state;
    for (a = 0; a < 3; a++) { /* the wall x[a] = 0 */
        double p[3] = {0, 0, 0};
        int32_t const o = add_vertex(&s, 0, 0, 0);
        p[(a + 1) % 3] = 8;
        add_vertex(&s, p[0], p[1], p[2]);
        p[(a + 2) % 3] = 8;
        add_vertex(&s, p[0], p[1], p[2]);
        p[(a + 1) % 3] = 0;
        add_vertex(&s, p[0], p[1], p[2]);
        add_triangle(&s, o, o + 1, o + 2);
        add_triangle(&s, o, o + 2, o + 3);
    }
    check_keys(&s, 1, 0.5, 0.75, 0.625, nlist_key(0, FACE), nlist_key(2, FACE), nlist_key(5, FACE));
    check_keys(&s, 1, -0.25, -0.25, -0.25, nlist_key(0, VERTEX_A), -1, -1);
    check_keys(&s, 1, 3, -0.25, -0.25, nlist_key(3, EDGE_CA), -1, -1);
    drop_surface(&s);
}

/* Triangles without area are surface like others, and do not count twice. */
static void test_degenerate(void **state)
{
    int place;
    (void)state;
    for (place = 0; place < 2; place++) {
        surface s = {0};
        int32_t const before = place == 0 ? 3 : 0;
        add_vertex(&s, 0, 0, 0);
        add_vertex(&s, 4, 0, 0);
        add_vertex(&s, 4, 4, 0);
        add_vertex(&s, 0, 4, 0);
        add_vertex(&s, 2, 2, 0);
        if (before) { /* a segment, a segment of three points, a point */
            add_triangle(&s, 0, 2, 2);
            add_triangle(&s, 0, 4, 2);
            add_triangle(&s, 1, 1, 1);
        }
        add_triangle(&s, 0, 1, 2);
        add_triangle(&s, 0, 2, 3);
        if (!before) {
            add_triangle(&s, 0, 2, 2);
            add_triangle(&s, 0, 4, 2);
            add_triangle(&s, 1, 1, 1);
        }
        check_keys(&s, 1, 2.5, 2, 0.5, nlist_key(before, FACE), -1, -1);
        check_keys(&s, 1, 2, 2.5, 0.5, nlist_key(before + 1, FACE), -1, -1);
        if (!before) check_keys(&s, 1, 1, 1, 0.5, nlist_key(0, EDGE_CA), -1, -1);
        if (!before) check_keys(&s, 1, 4.25, -0.25, 0.25, nlist_key(0, VERTEX_B), -1, -1);
        {
            nlist list = {0};
            nlist_desc d = wall_desc(1);
            real const p[6] = {1, 1, (real)0.5, (real)4.25, (real)-0.25, (real)0.25};
            hand_over(&s, INDEXED);
            CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, p, 0, 2), NLIST_OK);
            CHECK(row_length(&list, 0) == 1 && row_length(&list, 1) == 1);
            nlist_free(&list);
        }
        drop_surface(&s);
    }
}

/* ------------------------------------------------------------------------------------------------
   Random surfaces against the oracle
   ---------------------------------------------------------------------------------------------- */

static void test_random_surfaces(void **state)
{
    int const rounds = 400 / share() + 4;
    int64_t rows = 0, clear = 0, listed = 0;
    int round;
    (void)state;
    for (round = 0; round < rounds; round++) {
        nlist list = {0}, other = {0};
        surface s = {0};
        nlist_desc d = wall_desc(0.1 + 0.3 * (double)wl_u(&dice));
        int32_t const n = 40;
        size_t const step = round % 2 ? 3 : 5;
        real *pos = NEW(real, (size_t)n * step), *radii = NEW(real, n);
        int32_t i;
        add_floor(&s, 4, 3, 0.5, round % 3 ? 0.3 : 0, round % 4 ? hilly : flat);
        /* a second sheet that goes through the first */
        if (round % 5 == 0) add_floor(&s, 3, 3, 0.6, 0.2, hilly);
        for (i = 0; i < n; i++) {
            real *p = pos + (size_t)i * step;
            p[0] = between((real)-0.3, (real)2.3);
            p[1] = between((real)-0.3, (real)1.8);
            p[2] = between((real)-0.4, (real)0.4);
            if (round % 3 == 0 && i % 2) { /* over edges and corners */
                p[0] = (real)0.25 * (real)roll(9);
                p[1] = (real)0.25 * (real)roll(8);
            }
            radii[i] = round % 2 ? 0 : between(0, (real)0.2);
        }
        d.radii = round % 2 ? NULL : radii;
        hand_over(&s, round % FORMS);
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, step * sizeof(real), n),
            NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (i = 0; i < n; i++)
            clear += check_row(&list, &s, i, pos + (size_t)i * step, (double)(d.radius + radii[i]));
        rows += n;
        listed += list.total;
        hand_over(&s, (round + 1) % FORMS);
        CHECK_RESULT(nlist_build_mesh(&other, &d, &s.tree, &s.mesh, pos, step * sizeof(real), n),
            NLIST_OK);
        CHECK_FINE(oracle_same_order(&list, &other));
        free(pos);
        free(radii);
        nlist_free(&list);
        nlist_free(&other);
        drop_surface(&s);
    }
    CHECK(clear > rows * 8 / 10 && listed > rows / 2);
}

/* As many particles as are searched by cells: each row is that of the oracle, and the one that a
   list of this particle alone has, which searches the tree. Also with one particle far away, one
   giant, and a giant triangle. */
static void test_many_particles(void **state)
{
    enum { N = 150 };
    int round;
    (void)state;
    for (round = 0; round < 60 / share() + 12; round++) {
        nlist list = {0}, alone = {0};
        surface s = {0};
        nlist_desc d = wall_desc(0.02);
        real pos[3 * N], radii[N], thickness[400];
        uint32_t masks[400], own[N];
        int64_t listed = 0;
        int32_t i, k;
        add_floor(&s, 8, 8, 0.25, round % 3 ? 0.3 : 0, round % 4 ? hilly : flat);
        if (round % 5 == 1) {
            k = add_vertex(&s, -40, -50, -1);
            (void)add_vertex(&s, 60, -40, 0.5);
            (void)add_vertex(&s, 1, 80, 0.25);
            add_triangle(&s, k, k + 1, k + 2);
        }
        for (i = 0; i < N; i++) {
            pos[3 * i] = between((real)-0.3, (real)2.3);
            pos[3 * i + 1] = between((real)-0.3, (real)2.3);
            pos[3 * i + 2] = between((real)-0.4, (real)0.6);
            radii[i] = between((real)0.02, (real)(round % 3 ? 0.1 : 0.25));
            own[i] = 1u << i % 3;
        }
        if (round % 6 == 2) pos[3 * (N / 2)] = 1000;
        if (round % 6 == 3) radii[N / 3] = 3;
        hand_over(&s, round % FORMS);
        d.radii = radii;
        for (k = 0; k < triangles(&s); k++) {
            thickness[k] = (real)0.01 * (real)(k % 7);
            masks[k] = 1u << k % 2 | 4u;
        }
        if (round % 4 == 1) s.mesh.thickness = thickness;
        if (round % 4 == 2) d.masks = own, s.mesh.masks = masks;
        if (round % 4 == 3) d.skin = (real)0.05;
        CHECK_RESULT(nlist_build_mesh(&list, &d, &s.tree, &s.mesh, pos, 0, N), NLIST_OK);
        CHECK_RESULT(nlist_validate(&list), NLIST_OK);
        for (i = 0; i < N; i++) {
            nlist_desc one = d;
            nlist_each e = nlist_of(&list, i), o;
            one.radii = radii + i;
            if (d.masks) one.masks = own + i;
            CHECK_RESULT(nlist_build_mesh(&alone, &one, &s.tree, &s.mesh, pos + 3 * i, 0, 1),
                NLIST_OK);
            o = nlist_of(&alone, 0);
            while (nlist_next(&o)) CHECK(nlist_next(&e) && e.id == o.id);
            CHECK(!nlist_next(&e));
            listed += alone.total;
            if (round % 4 == 0)
                (void)check_row(&list, &s, i, pos + 3 * i, (double)(d.radius + radii[i]));
        }
        CHECK(listed > 3 && listed == list.total);
        nlist_free(&list);
        nlist_free(&alone);
        drop_surface(&s);
    }
}
