/* keys.cu - a part of test_lbvh.cu: codes of 63 bits, which are sorted by keys of 20 to 32 bits:
   elements whose keys are equal, a few, many, in several chunks; keys relative to samples at all
   scales; the sizes at which the sort and the number of bits change.
   SPDX-License-Identifier: MIT OR Unlicense */

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

/* Builds, compares everything, and checks how keys were chosen. */
static void check_keys(const Input &in, int clustered, int least_runs, int most_runs)
{
    lbvh_cuda_facts facts = {};
    OnDevice const on_device(in);
    Trees g;
    if (!build(&g, in, on_device)) return;
    CHECK(cudaMemcpy(&facts, g.gpu.d_facts, sizeof facts, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(facts.clustered == clustered);
    CHECK(facts.runs >= least_runs && facts.runs <= most_runs);
}

/* Samples lie anywhere; all others are in one cell of the upper 32 bits: a run in `n / 1024`
   chunks. */
static void test_keys_of_one_clump()
{
    for (int n : {17, 40, 300, 1200, 2300, 4500})
        for (int dim = 2; dim <= 3; dim++) {
            if (n > 2 * size_max) continue;
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
    for (int n : {250, 700, 1500})
        for (int shape = 0; shape < 5; shape++)
            for (int builder = 0; builder < 3; builder++) {
                if (shape % 3 != builder && n > 250) continue;
                context = "keys of clusters: " + std::to_string(n) + ", shape " +
                          std::to_string(shape);
                Points p(2 + n / 50 % 2, (lbvh_builder)builder, n);
                for (int i = 0; i < n; i++) switch (shape) {
                    case 0: p.add(0, std::ldexp(1.0, -(int)wl_below(&p.random, 24))); break;
                    case 1: p.add(0.3, i % 3 ? 0 : 1e-6); break; /* two thirds are one sample */
                    case 2: p.add(i % 5 * 0.2, i % 7 ? 1e-5 : 0.1); break;
                    /* a far clump without a sample: one long run */
                    case 3: p.add(is_sample(i, n) ? 0 : 0.75, is_sample(i, n) ? 1e-5 : 1e-6); break;
                    default: p.add(i % 2 * 0.5, 0);
                    }
                check_keys(p.in, 1, shape == 3, shape == 3 ? 3 : n);
            }
}

/* Uniform points: sorted in one launch, or by CUB (up to 4096, and with 132 multiprocessors from
   540673 on; emulated from 1281 on); keys of 24 bits, and of 32. */
static void test_keys_of_uniform_points()
{
#ifdef CUDA_EMU
    int const most = 3 * size_max;
#else
    int const most = INT_MAX;
#endif
    for (int n : {1024, 1280, 1281, 2000, 4096, 4097, 11265, 135168, 135169, 1 << 18, (1 << 18) + 1,
                  540672, 540673}) {
        if (n > most) continue;
        context = "keys of uniform points: " + std::to_string(n);
        Points p(3, LBVH_MERGE, n);
        for (int i = 0; i < p.in.n; i++) p.add(0, 1);
        check_keys(p.in, 0, 0, 0);
    }
}

/* Many equal keys: in so many places, one after another or in turn. Buckets are as full as is
   sorted by comparing, or fuller, so that keys are sorted by digits, in several tiles. */
static void test_keys_in_full_buckets()
{
#ifdef CUDA_EMU
    int const sizes[] = {400, 1279}, fills[] = {3, 15, 40, 64, 65, 1280};
#else
    int const sizes[] = {40000, 300001}, fills[] = {3, 100, 200, 2048, 2049, 300001};
#endif
    for (int n : sizes)
        for (int fill : fills)
            for (int32_t bits : {30, 63}) {
                context = "keys in full buckets: " + std::to_string(n) + ", " +
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
