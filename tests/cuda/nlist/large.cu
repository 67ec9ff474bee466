/* large.cu - a part of test_nlist.cu: many blocks at work at once, which the emulator runs one
   after another.
   SPDX-License-Identifier: MIT OR Unlicense */

/* Many blocks at work at once: what the emulator runs one after another. On a GPU each is built
   several times, with history. */
static void test_large()
{
#ifdef CUDA_EMU
    int const n = share > 100 ? 200 : share > 16 ? 600 : 3000, rounds = 2;
#else
    int const n = n_max < 1000 || share > 8 ? 20011 : 200003, rounds = 4;
#endif
    for (int k = 0; k < 16; k += share > 100 ? 5 : 1) {
        Case c = {};
        c.layout = (nlist_layout)(k % 4);
        c.half = k / 4 % 2;
        c.deterministic = k / 8;
        c.source = k % 3 ? GRID : TREE;
        c.dim = 3;
        c.periodic = k % 2 * 2;
        c.variant = 45; /* UGRID_SORT, the largest reach */
        c.history = 4;
        c.width = c.layout == NLIST_HYBRID ? 8 : 0;
        c.n = n;
        context = "large: " + name_of(c);
        Input const in = input_of(c, k);
        OnDevice const there(in);
        Both b;
        for (int round = 0; round < rounds; round++) {
            if (!build(&b, c, in, there)) break;
            stamp_all(&b, nullptr, (uint32_t)round + 1);
        }
        check_sum<4>(&b, NLIST_AUTO, 1.0 / (1 << 20), {3, 0, 0, (real)0.3 / 65536});
        check_sum<4>(&b, NLIST_PER_CONTACT, 1.0 / (1 << 20), {3, 0, 0, (real)0.3 / 65536});
    }
}
