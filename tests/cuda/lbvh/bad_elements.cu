/* bad_elements.cu - a part of test_lbvh.cu: elements that are not finite or inverted: left out, and
   the first is reported, as by the serial build.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { BAD_NAN, BAD_INFINITY, BAD_OVERFLOW, BAD_ORDER, BAD_INDEX_LOW, BAD_INDEX_HIGH, BADS };

/* Spoils element i. Returns what lbvh_cuda_check is to say, LBVH_OK when this kind cannot be bad in
   this way. */
static lbvh_result spoil(Input *in, int32_t i, int bad)
{
    size_t const step = in->stride ? in->stride / sizeof(real) : in->width,
        dim = (size_t)in->desc.dim;
    size_t const row = in->indices.empty() ? (size_t)i :
        (size_t)in->indices[3 * (size_t)i + (size_t)i % 3];
    real *x = &in->data[row * step];
    if (bad == BAD_INDEX_LOW || bad == BAD_INDEX_HIGH) {
        if (in->indices.empty()) return LBVH_OK;
        in->indices[3 * (size_t)i + (size_t)i % 3] = bad == BAD_INDEX_LOW ? -1 - i % 2 * INT32_MAX :
            in->desc.vertices + i % 2;
        return LBVH_BAD_INDEX;
    }
    if (bad == BAD_NAN) return x[(size_t)i % in->width] = not_a_number, LBVH_NOT_FINITE;
    if (bad == BAD_INFINITY)
        return x[(size_t)i % in->width] = i % 2 ? infinity : -infinity, LBVH_NOT_FINITE;
    if (bad == BAD_OVERFLOW && in->desc.kind == LBVH_SPHERES)
        return x[0] = x[dim] = lbvh_i_largest(), LBVH_NOT_FINITE;
    if (bad == BAD_ORDER && in->desc.kind == LBVH_SPHERES) return x[dim] = -1, LBVH_INVERTED;
    if (bad == BAD_ORDER && in->desc.kind == LBVH_BOXES)
        return x[(size_t)i % dim] = x[dim + (size_t)i % dim] + 1, LBVH_INVERTED;
    return LBVH_OK;
}

/* Spoils every `every`th element from `from` on. Returns the first of them, -1 when none could
   be. */
static int32_t spoil_some(Input *in, int bad, int every, int from, lbvh_result *result)
{
    int32_t first = -1;
    *result = LBVH_OK;
    for (int32_t i = from; i < in->n; i += every) {
        lbvh_result const one = spoil(in, i, bad);
        if (one == LBVH_OK || first >= 0) continue;
        *result = one;
        first = i;
    }
    return first;
}

/* lbvh_cuda_check tells the first bad element, as the serial code would; and again when asked
   again. */
static void check_told(Trees &g, const Input &in)
{
    lbvh_desc d = host_desc(in);
    std::vector<real> boxes(2 * (size_t)in.desc.dim * (size_t)in.n + 1);
    int32_t bad_id;
    d.skip_invalid = 0;
    lbvh_result const want = lbvh_boxes(&d, in.data.data(), in.stride, in.n, boxes.data(), &bad_id);
    CHECK(g.serial.bad_id == bad_id);
    for (int again = 0; again < 2; again++) {
        CHECK_RESULT(lbvh_cuda_check(&g.gpu, stream), want);
        CHECK(g.gpu.device.tree.bad_id == bad_id);
    }
}

/* Refits with elements of which others are bad, and with good ones: what was left out comes
   back. */
static void check_bad_refits(Trees &g, const Case &c, OnDevice *on_device, size_t k)
{
    lbvh_desc const desc = g.serial.desc;
    lbvh_result result;
    for (int step = 0; step < 2; step++) {
        Input in = input_of(c, (int)k + 1);
        if (step == 0) (void)spoil_some(&in, (int)(k % 2), 5, 1 + (int)(k % 3), &result);
        Device<real> d_data(in.data);
        if (!in.indices.empty()) { /* they lie where the build found them */
            on_device->indices.set(in.indices);
            g.serial.desc.indices = in.indices.data();
        }
        in.desc.radius = desc.radius;
        CHECK_RESULT(lbvh_refit(&g.serial, in.data.data(), in.stride), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_refit(&g.gpu, d_data.p, in.stride, stream), LBVH_OK);
        check_told(g, in);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
        g.serial.desc = desc;
    }
}

static void test_invalid()
{
    for (size_t k = 0; k < case_count * BADS; k++) {
        if (!chosen(k, 50 * share, 2250)) continue;
        Case c = case_of(k / BADS);
        int const bad = (int)(k % BADS);
        lbvh_result result, other;
        c.n = search_size(c.shape, k);
        context = "invalid, sort " + std::to_string(bad) + ": " + name_of(c);
        Input in = input_of(c, (int)k);
        in.desc.skip_invalid = (int)(k % 2);
        bool const all = k % 3 == 0;
        int32_t const first = spoil_some(&in, bad, all ? 1 : 7, all ? 0 : (int)(scattered(k) % 30),
            &result);
        if (k % 4 == 1) (void)spoil_some(&in, (bad + 3) % BADS, 11, 2, &other);
        OnDevice on_device(in);
        Trees g;
        if (!build(&g, in, on_device)) continue;
        check_told(g, in);
        if (k % 4 != 1)
            CHECK(g.gpu.device.tree.bad_id == first && lbvh_cuda_check(&g.gpu, stream) == result);
        check_pairs(g, in);
        check_own(g, k % 2 ? LBVH_BOXES : LBVH_POINTS, 1, (int)(scattered(k) % 8), 0);
        check_given(g, LBVH_BOXES, 40, 0, 0, 0, false, 3);
        check_nearest(g, 40, 8, infinity, 0, false, 4);
        check_boxes(g, in, on_device);
        check_bad_refits(g, c, &on_device, k);
    }
}
