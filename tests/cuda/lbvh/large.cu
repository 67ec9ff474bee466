/* large.cu - a part of test_lbvh.cu: many blocks at work at once, which the emulator runs one
   after another.
   SPDX-License-Identifier: MIT OR Unlicense */

/* So many blocks that what they leave over fills blocks of its own; that is where races between
   blocks would be. */
static void test_many_blocks()
{
    for (int builder = 0; builder < 2; builder++) {
        Case const c = {3, BOXES, 63, (lbvh_builder)builder, builder, 0, 0, UNIFORM, 0, 6007};
        Input const in = input_of(c, 1);
        OnDevice const on_device(in);
        Trees g;
        context = "many blocks: " + name_of(c);
        if (!build(&g, in, on_device)) continue;
        CHECK_RESULT(lbvh_cuda_refit(&g.gpu, on_device.data.p, in.stride, stream), LBVH_OK);
        CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
        check_arrays(g.serial, g.copy);
    }
}

/* Many blocks at work at once: what the emulator runs one after another. On a GPU each is built
   several times. */
static void test_large()
{
#ifdef CUDA_EMU
    int const n = size_max >= 4097 ? 5003 : 600, rounds = 1;
#else
    int const n = size_max >= 4097 ? 1000003 : 50021, rounds = 5;
#endif
    for (int shape = 0; shape < SHAPES; shape++)
        for (int builder = 0; builder < 2; builder++) {
            int const dim = 3 - (shape + builder) % 2;
            int const bits = builder % 2 == shape % 2 ? 63 : 30;
            Case const c = {dim, (Form)(shape % FORMS), bits, (lbvh_builder)builder, shape % 2, 1,
                0, (Shape)shape, 0, n};
            context = "large: " + name_of(c);
            Input const in = input_of(c, shape);
            OnDevice const on_device(in);
            Trees g;
            for (int turn = 0; turn < rounds; turn++) if (!build(&g, in, on_device)) break;
            if (c.shape > LATTICE && c.shape != LINE) continue; /* too many pairs */
            int64_t want = -1;
            Device<int64_t> d_pairs(1);
            CHECK_RESULT(lbvh_count_pairs(&g.serial, &want), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_count_pairs(&g.gpu, d_pairs.p, stream), LBVH_OK);
            CHECK(d_pairs.get()[0] == want);
            check_own(g, LBVH_BOXES, 0, builder ? LBVH_PLACES : LBVH_HALF, 0);
            check_nearest(g, 5000, 8, infinity, 0, false, 3);
            CHECK_RESULT(lbvh_refit(&g.serial, in.data.data(), in.stride), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_refit(&g.gpu, on_device.data.p, in.stride, stream), LBVH_OK);
            CHECK_RESULT(lbvh_cuda_download(&g.copy, &g.gpu, stream), LBVH_OK);
            check_arrays(g.serial, g.copy);
        }
}
