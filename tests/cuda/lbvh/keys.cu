/* keys.cu - a part of test_lbvh.cu: how elements are sorted. By samples: equal codes, elements that
   the samples do not tell apart, the sizes at which blocks and buckets change. And by keys of up to
   32 bits, where there are more: elements whose keys are equal, a few, many, in several chunks;
   keys relative to samples at all scales.
   SPDX-License-Identifier: MIT OR Unlicense */

/* So many elements are sorted by keys: more than 152 shares of 12288, emulated one of 1280. */
#ifdef CUDA_EMU
static int const keyed_least = 1281;
#else
static int const keyed_least = 152 * 12288 + 1;
#endif

/* Where the build takes its samples: up to 1023, of element (2 s + 1) n / (2 samples). */
static bool is_sample(int i, int n)
{
    int64_t const samples = std::min(n / 16 + 1, 1023), s = (int64_t)i * samples / n;
    return (2 * s + 1) * n / (2 * samples) == i;
}

/* Points of the unit square or cube. */
struct Points {
    Input in;
    wl_random random;
    Points(int dim, lbvh_builder builder, int n)
    {
        in = {};
        in.desc.dim = dim;
        in.desc.kind = LBVH_POINTS;
        in.desc.builder = builder;
        in.desc.keep_codes = 1;
        for (int a = 0; a < dim; a++) in.desc.max[a] = 1;
        in.n = n;
        in.width = (size_t)dim;
        random = wl_seed((uint64_t)n);
    }
    /* a point of the box from `at` with edges of `size` */
    void add(double at, double size)
    {
        for (int a = 0; a < in.desc.dim; a++) in.data.push_back((real)(at + size * wl_u(&random)));
    }
};

/* Builds, compares everything, and checks how keys were chosen, where there are any. clustered: -1
   where that is open. */
static void check_keys(const Input &in, int clustered, int least_runs, int most_runs,
                       int by_quantiles = 0)
{
    lbvh_cuda_facts facts = {};
    OnDevice const on_device(in);
    Trees g;
    if (!build(&g, in, on_device)) return;
    if (in.n < keyed_least) return;
    CHECK(cudaMemcpy(&facts, g.gpu.d_facts, sizeof facts, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(facts.by_quantiles == by_quantiles);
    CHECK(clustered < 0 || facts.clustered == clustered);
    CHECK(facts.runs >= least_runs && facts.runs <= most_runs);
}

/* Samples lie anywhere; all others are in one cell of the upper 32 bits: a run in `n / 1024`
   chunks. */
static void test_keys_of_one_clump()
{
    for (int n : {17, 40, 300, 1300, 2300, 4500, keyed_least})
        for (int dim = 2; dim <= 3; dim++) {
            if (n != keyed_least && n > 3 * size_max) continue;
            context = "keys of one clump: " + std::to_string(n);
            Points p(dim, LBVH_MERGE, n);
            for (int i = 0; i < n; i++)
                if (is_sample(i, n)) p.add(0, 1);
                else p.add(0.25, dim == 2 ? 1.0 / 131072 : 1.0 / 4096);
            check_keys(p.in, 0, n > 17, 1);
        }
}

/* Two samples and more are alike. */
static void test_keys_of_clusters()
{
    for (int n : {250, 700, 1500, keyed_least})
        for (int shape = 0; shape < 5; shape++)
            for (int builder = 0; builder < 2; builder++) {
                if ((shape % 2 != builder && n > 250) || (builder > 0 && n > 2000)) continue;
                context = "keys of clusters: " + std::to_string(n) + ", shape " +
                          std::to_string(shape);
                Points p(2 + n / 50 % 2, (lbvh_builder)builder, n);
                for (int i = 0; i < n; i++) switch (shape) {
                    case 0: p.add(0, std::ldexp(1.0, -(int)wl_below(&p.random, 16))); break;
                    case 1: p.add(0.3, i % 3 ? 0 : 1e-4); break; /* two thirds are one sample */
                    case 2: p.add(i % 5 * 0.2, i % 7 ? 1e-5 : 0.1); break;
                    /* a far clump without a sample: one long run */
                    case 3: p.add(is_sample(i, n) ? 0 : 0.75, is_sample(i, n) ? 1e-5 : 1e-4); break;
                    default: p.add(i % 2 * 0.5, 0);
                    }
                check_keys(p.in, 1, shape == 3, shape == 3 ? 3 : n);
            }
}

/* Elements of which a lattice tells too few apart. */
static void test_keys_by_quantiles()
{
    for (int n : {700, keyed_least})
        for (int32_t bits : {30, 63})
            for (int builder = 0; builder < 2; builder++) {
                if (builder > 0 && n > 2000) continue;
                context = "keys by quantiles: " + std::to_string(n) + ", " + std::to_string(bits);
                Points p(2 + n / 50 % 2, (lbvh_builder)builder, n);
                p.in.desc.bits = bits;
                for (int i = 0; i < n; i++) p.add(0, i % 100 ? 1e-8 : 1);
                check_keys(p.in, -1, 0, n, 1);
            }
}

/* Uniform points: sizes at which there is one more block, or bucket, or a share is as large as it
   may be (132 multiprocessors); and keys of 32 bits. */
static void test_keys_of_uniform_points()
{
#ifdef CUDA_EMU
    int const most = 3 * size_max;
#else
    int const most = INT_MAX;
#endif
    for (int n : {1, 31, 33, 64, 65, 255, 257, 1023, 1025, 1280, 1281, 4097, 135168, 135169,
                  1 << 20, 1622016, 1622017, keyed_least}) {
        if (n > most) continue;
        context = "keys of uniform points: " + std::to_string(n);
        Points p(3, LBVH_MERGE, n);
        for (int i = 0; i < p.in.n; i++) p.add(0, 1);
        check_keys(p.in, 0, 0, 0);
    }
}

/* Many equal codes: in so many places, one after another or in turn. */
static void test_sort_of_equal_codes()
{
#ifdef CUDA_EMU
    int const sizes[] = {400, 1279}, fills[] = {3, 15, 40, 64, 65, 1280};
#else
    int const sizes[] = {40000, 300001}, fills[] = {3, 100, 200, 2048, 2049, 300001};
#endif
    for (int n : sizes)
        for (int fill : fills)
            for (int32_t bits : {30, 63}) {
                context = "sort of equal codes: " + std::to_string(n) + ", " +
                          std::to_string(fill) + " each, " + std::to_string(bits) + " bits";
                Points p(3, LBVH_MERGE, n);
                p.in.desc.bits = bits;
                int const places = (n + fill - 1) / fill;
                for (int i = 0; i < n; i++) {
                    int const place = fill % 2 ? i % places : i / fill;
                    for (double step : {0.618, 0.755, 0.57})
                        p.in.data.push_back((real)std::fmod((place + 1) * step, 1));
                }
                OnDevice const on_device(p.in);
                Trees g;
                (void)build(&g, p.in, on_device);
            }
}

/* lbvh_i_hash: samples are taken at random. */
static uint32_t hash_of(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}

/* The samples lie anywhere, all others in a clump between two of them: a bucket that does not fit
   into shared memory. In the clump codes differ, or are equal, or differ at all scales. */
static void test_sort_unseen_by_samples()
{
#ifdef CUDA_EMU
    int const sizes[] = {256, 600, 1280};
#else
    int const sizes[] = {7 * 1024, 8 * 1024, 9 * 1024, 20 * 1024, 96 * 1024};
#endif
    for (int n : sizes)
        for (int shape = 0; shape < 3; shape++)
            for (int32_t bits : {30, 63}) {
                context = "sort unseen by samples: " + std::to_string(n) + ", shape " +
                          std::to_string(shape) + ", " + std::to_string(bits) + " bits";
                Points p(3, LBVH_MERGE, n);
                p.in.desc.bits = bits;
#ifdef CUDA_EMU
                int const share = n;
#else
                int const share = 1024;
#endif
                for (int i = 0; i < n; i++) {
                    int const k = i % share, lane = (32 * k + 31) / share,
                              begin = lane * share / 32, end = (lane + 1) * share / 32;
                    uint32_t const s = (uint32_t)(i / share * 32 + lane);
                    bool const sample =
                        k == begin + (int)(hash_of(s) % (uint32_t)(end - begin));
                    if (sample) p.add(0, 1);
                    else if (shape == 0) p.add(0.3, 1e-3);
                    else if (shape == 1) p.add(0.3, 0);
                    else p.add(0.3, std::ldexp(1e-3, -(int)wl_below(&p.random, 16)));
                }
                OnDevice const on_device(p.in);
                Trees g;
                (void)build(&g, p.in, on_device);
            }
}

/* What is reserved for many elements, which are sorted by keys, is enough for few, too. */
static void test_sort_reserved()
{
    for (int32_t bits : {30, 63}) {
        Heap h = {};
        lbvh_cuda gpu = {};
        context = "sort reserved: " + std::to_string(bits) + " bits";
        Points p(3, LBVH_MERGE, keyed_least);
        p.in.desc.bits = bits;
        for (int i = 0; i < keyed_least; i++) p.add(0, 1);
        OnDevice const on_device(p.in);
        lbvh_desc d = device_desc(p.in, on_device);
        d.cuda_allocator = allocator_of(&h);
        CHECK_RESULT(lbvh_cuda_reserve(&gpu, &d, keyed_least, 0, stream), LBVH_OK);
        long const calls = h.calls;
        for (int n : {keyed_least - 1, 400, keyed_least}) {
            CHECK_RESULT(lbvh_cuda_build(&gpu, &d, on_device.data.p, 0, n, stream), LBVH_OK);
            CHECK(h.calls == calls);
        }
        lbvh_cuda_free(&gpu);
    }
}
