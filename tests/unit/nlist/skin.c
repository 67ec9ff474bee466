/* skin.c - a part of test_nlist.c: nlist_moved and the skin: a list stays valid until some
   particle has moved half of it.
   SPDX-License-Identifier: MIT OR Unlicense */

static int moved(const nlist *list, const real *pos, size_t stride)
{
    int32_t answer = -1;
    CHECK_RESULT(nlist_moved(list, pos, stride, &answer), NLIST_OK);
    CHECK(answer == 0 || answer == 1);
    return answer;
}

/* Exactly half the skin is not more than it, the next number is; along an axis, and along 3 : 4 :
   5. From the origin, where the distance has no rounding. */
static void test_half_a_skin(void **state)
{
    static const real places[2][3] = {{0, 0, 0}, {8, 8, 8}};
    int dim, layout, a, side;
    (void)state;
    for (dim = 2; dim <= 3; dim++) for (layout = 0; layout < 4; layout++) {
        nlist list = {0};
        nlist_desc d;
        real pos[2][3];
        memset(&d, 0, sizeof d);
        d.dim = dim;
        d.radius = 1;
        d.skin = (real)0.625;
        d.layout = (nlist_layout)layout;
        memcpy(pos, places, sizeof pos);
        CHECK_RESULT(nlist_build_brute(&list, &d, pos[0], sizeof pos[0], 2), NLIST_OK);
        CHECK(!moved(&list, pos[0], sizeof pos[0]));
        for (a = 0; a < dim; a++) for (side = -1; side <= 1; side += 2) {
            pos[0][a] = (real)side * (real)0.3125;
            CHECK(!moved(&list, pos[0], sizeof pos[0]));
            pos[0][a] = oracle_beside(pos[0][a], side);
            CHECK(moved(&list, pos[0], sizeof pos[0]));
            pos[0][a] = 0;
        }
        pos[0][0] = (real)0.1875;
        pos[0][1] = (real)-0.25;
        CHECK(!moved(&list, pos[0], sizeof pos[0]));
        pos[0][1] = oracle_beside(pos[0][1], -1);
        CHECK(moved(&list, pos[0], sizeof pos[0]));
        memcpy(pos, places, sizeof pos);
        pos[1][dim - 1] += (real)0.3125; /* the last particle, the last axis */
        CHECK(!moved(&list, pos[0], sizeof pos[0]));
        pos[1][dim - 1] += (real)0.0625;
        CHECK(moved(&list, pos[0], sizeof pos[0]));
        pos[1][dim - 1] = REAL_NAN;
        CHECK(moved(&list, pos[0], sizeof pos[0]));
        nlist_free(&list);
    }
}

/* Across the border of a periodic axis, whether the caller puts the particle back into the box or
   not. */
static void test_skin_across_the_border(void **state)
{
    nlist list = {0};
    nlist_desc d;
    real pos[6] = {(real)7.875, 2, 2, 4, 4, 4};
    (void)state;
    memset(&d, 0, sizeof d);
    d.radius = 1;
    d.skin = (real)0.5;
    d.periodic[0] = 1;
    d.max[0] = 8;
    CHECK_RESULT(nlist_build_brute(&list, &d, pos, 0, 2), NLIST_OK);
    pos[0] = (real)8.125;
    CHECK(!moved(&list, pos, 0));
    pos[0] = (real)0.125;
    CHECK(!moved(&list, pos, 0));
    pos[0] = (real)0.1875;
    CHECK(moved(&list, pos, 0));
    pos[0] = (real)7.875;
    pos[1] = 10; /* not periodic: that is far */
    CHECK(moved(&list, pos, 0));
    nlist_free(&list);
}

/* Renamed particles have the positions that they had; new ones have none, wherever they are. */
static void test_skin_follows_names(void **state)
{
    int counter;
    (void)state;
    for (counter = 0; counter < 40; counter++) {
        nlist list = {0};
        oracle_scene s;
        nlist_desc d;
        real *pos, *at;
        int32_t *new_id, i, k;
        oracle_make(&s, ORACLE_UNIFORM, 2 + counter % 2, counter / 4 % 4, 2 + roll(20), ORACLE_SKIN,
            &dice);
        d = oracle_desc(&s);
        d.layout = (nlist_layout)(counter % 4);
        d.grow = 1;
        d.half = roll(2);
        d.history = 4 * roll(2);
        CHECK_RESULT(nlist_build_brute(&list, &d, s.pos, 0, s.n), NLIST_OK);
        new_id = NEW(int32_t, s.n);
        pos = NEW(real, (s.n + 1) * s.dim);
        for (i = 0; i < s.n; i++) new_id[i] = i;
        for (i = s.n - 1; i > 0; i--) {
            int32_t const j = roll((int)i + 1), was = new_id[i];
            new_id[i] = new_id[j];
            new_id[j] = was;
        }
        for (i = 0; i < (s.n + 1) * s.dim; i++) pos[i] = 0;
        for (i = 0; i < s.n; i++)
            memcpy(pos + new_id[i] * s.dim, oracle_point(&s, i), (size_t)s.dim * sizeof(real));
        CHECK_RESULT(nlist_remap(&list, new_id, s.n), NLIST_OK);
        CHECK(!moved(&list, pos, 0));
        at = pos + roll((int)s.n) * s.dim;
        *at += s.skin * (real)0.25;
        CHECK(!moved(&list, pos, 0));
        *at += s.skin * (real)0.5;
        CHECK(moved(&list, pos, 0));
        *at -= s.skin * (real)0.75;
        CHECK(!moved(&list, pos, 0));
        for (k = 0; k < s.n; k++) new_id[k] = k;
        CHECK_RESULT(nlist_remap(&list, new_id, s.n + 1), NLIST_OK); /* one more, at the origin */
        CHECK(moved(&list, pos, 0));
        free(new_id);
        free(pos);
        oracle_forget(&s);
        nlist_free(&list);
    }
}

/* The promise of the skin: as long as nlist_moved reports no movement, all pairs within the radius
   are in the list. */
static void test_skin_keeps_its_promise(void **state)
{
    int counter, kept = 0, broken = 0;
    (void)state;
    describe = describe_case;
    for (counter = 0; counter < 60; counter++) {
        nlist list = {0}, fresh = {0};
        oracle_scene s;
        nlist_desc d;
        feeder f;
        int source, step;
        if (!chosen(counter)) continue;
        oracle_make(&s, roll(ORACLE_EMPTY), 2 + roll(2), roll(8), 2 + roll(50),
            ORACLE_SKIN | (roll(2) ? ORACLE_RADII : 0), &dice);
        do source = roll(SOURCES); while (!possible(&s, source) || source == PAIRS);
        d = oracle_desc(&s);
        now.scene = &s;
        now.desc = &d;
        now.source = source;
        make_feeder(&f, &s, source);
        CHECK_RESULT(feed(&list, &d, &f, &s), NLIST_OK);
        d.skin = 0;
        for (step = 0; step < 12; step++) {
            int32_t i, j;
            int a;
            for (i = 0; i < s.n; i++) for (a = 0; a < s.dim; a++)
                oracle_point(&s, i)[a] += s.skin * between((real)-0.1, (real)0.1);
            if (s.radius <= 0 && !s.radii) break;
            if (moved(&list, s.pos, s.stride)) { broken++; continue; }
            kept++;
            CHECK_RESULT(nlist_build_brute(&fresh, &d, s.pos, s.stride, s.n), NLIST_OK);
            for (i = 0; i < s.n; i++) {
                nlist_each e = nlist_of(&fresh, i);
                while (nlist_next(&e)) {
                    j = e.id;
                    if (nlist_find(&list, i, j) >= 0) continue;
                    CHECK(oracle_distance(&s, oracle_point(&s, i), oracle_point(&s, j)) >=
                        oracle_reach(&s, i, j) - (double)s.skin
                          - oracle_slack(&s, oracle_point(&s, i), oracle_point(&s, j),
                              oracle_reach(&s, i, j)));
                }
            }
        }
        nlist_free(&list);
        nlist_free(&fresh);
        drop_feeder(&f);
        oracle_forget(&s);
    }
    CHECK(share() > 4 || (kept > 20 && broken > 20));
}
