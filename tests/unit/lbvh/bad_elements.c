/* bad_elements.c - a part of test_lbvh.c: elements that are not finite or inverted: refused with
   the number of the first, or left out.
   SPDX-License-Identifier: MIT OR Unlicense */

/* The `way`-th way to spoil element i, and the code that it must give; LBVH_OK: there are no more
   ways. */
static lbvh_result spoil(scene *s, int32_t i, int way)
{
    static const real odd[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    int const numbers = s->indexed ? 9 : width_of(s);
    real *x = element(s, s->indexed ? 0 : i);
    if (s->indexed) {
        int const corner = way / 3 % 3;
        if (way < 9)
            s->indices[3 * i + corner] = way % 3 == 0 ? -1 : way % 3 == 1 ? s->vertices : INT32_MIN;
        if (way < 9) return LBVH_BAD_INDEX;
        if (way >= 9 + 3 * s->dim) return LBVH_OK;
        x = element(s, s->indices[3 * i + corner]);
        x[(way - 9) / 3 % s->dim] = odd[way % 3];
        return LBVH_NOT_FINITE;
    }
    if (way < 3 * numbers) x[way / 3] = odd[way % 3];
    if (way < 3 * numbers) return LBVH_NOT_FINITE;
    way -= 3 * numbers;
    if (s->kind == LBVH_BOXES && way < s->dim) {
        x[way] = beside(x[s->dim + way], 1);
        return LBVH_INVERTED;
    }
    if (s->kind == LBVH_SPHERES && way < 2) { /* the second is lost in the rounding of the box */
        x[s->dim] = way ? (real)-1e-30 : -1;
        return LBVH_INVERTED;
    }
    if (s->kind == LBVH_SPHERES && way == 2) { /* finite, but its box is not */
        x[0] = x[s->dim] = REAL_LARGEST;
        return LBVH_NOT_FINITE;
    }
    return LBVH_OK;
}

static void check_refused(lbvh *tree, scene *s, lbvh_result want, int32_t first)
{
    lbvh_desc d = desc_of(s);
    real *boxes = NEW(real, 2 * s->dim * s->n);
    int32_t bad_id = -7;
    CHECK_RESULT(lbvh_build(tree, &d, s->data, s->stride, s->n), want);
    CHECK(tree->bad_id == first && tree->n == 0 && lbvh_root(tree) == -1);
    CHECK_RESULT(lbvh_validate(tree), LBVH_NOT_BUILT);
    CHECK_RESULT(lbvh_boxes(&d, s->data, s->stride, s->n, boxes, &bad_id), want);
    CHECK(bad_id == first);
    CHECK_RESULT(lbvh_boxes(&d, s->data, s->stride, s->n, boxes, NULL), want);
    free(boxes);
}

/* Boxes of elements, left out ones among them, are those of the oracle. */
static void check_boxes(const scene *s, int32_t first_bad)
{
    lbvh_desc const d = desc_of(s);
    real *boxes = NEW(real, 2 * s->dim * s->n);
    int32_t bad_id = -7, i;
    int a;
    CHECK_RESULT(lbvh_boxes(&d, s->data, s->stride, s->n, boxes, &bad_id), LBVH_OK);
    CHECK(bad_id == first_bad);
    for (i = 0; i < s->n; i++) for (a = 0; a < s->dim; a++) {
        CHECK(boxes[2 * s->dim * i + a] == s->truth[i].min[a]);
        CHECK(boxes[2 * s->dim * i + s->dim + a] == s->truth[i].max[a]);
    }
    free(boxes);
}

static void test_bad_elements(void **state)
{
    lbvh tree = {0};
    scene s;
    int dim, kind, way;
    (void)state;
    dice = wl_seed(12);
    current_scene = &s;
    describe = describe_scene;
    for (dim = 2; dim <= 3; dim++) for (kind = 0; kind < KINDS; kind++) for (way = 0;; way++) {
        lbvh_result want;
        int32_t const i = roll(11), later = i + 1 + roll(3);
        memset(&s, 0, sizeof s);
        s.dim = dim;
        s.stride = (size_t)roll(2);
        set_kind(&s, kind);
        make_scene(&s, &inputs[0], 14);
        check_boxes(&s, -1);
        want = spoil(&s, i, way);
        if (want != LBVH_OK) {
            check_refused(&tree, &s, want, i);
            (void)spoil(&s, later, 0); /* of another sort, often; it does not count */
            check_refused(&tree, &s, want, i);
            s.skip_invalid = s.masked = 1;
            s.masks = NEW(uint32_t, s.n);
            memset(s.masks, 0xFF, sizeof *s.masks * (size_t)s.n);
            leave_out(&s.truth[i]);
            leave_out(&s.truth[later]);
            check_builders(&tree, &s);
            CHECK(tree.bad_id == i);
            check_codes(&tree, &s, 0);
            check_boxes(&s, i);
            if (chosen(way)) check_everything(&tree, &s, 3);
            if (chosen(way) && kind == 0) check_odd_queries(&tree, &s);
        }
        forget(&s);
        if (want == LBVH_OK) break;
    }
    lbvh_free(&tree);
}

/* All of them left out. */
static void test_all_left_out(void **state)
{
    lbvh tree = {0};
    scene s;
    int32_t n, i;
    (void)state;
    dice = wl_seed(13);
    for (n = 1; n < 9; n++) {
        plain_scene(&s, &inputs[0], n);
        s.skip_invalid = 1;
        for (i = 0; i < n; i++) s.data[6 * i + i % 6] = REAL_NAN, leave_out(&s.truth[i]);
        check_builders(&tree, &s);
        CHECK(tree.bad_id == 0);
        check_odd_queries(&tree, &s);
        check_pairs(&tree, &s);
        check_own_rows(&tree, &s);
        forget(&s);
    }
    lbvh_free(&tree);
}
