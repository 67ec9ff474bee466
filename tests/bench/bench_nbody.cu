/* bench_nbody.cu - how fast and how exact is cuda/nbody.cu on this GPU? README.md in this folder
   explains the tables.
   SPDX-License-Identifier: MIT OR Unlicense

       make bench-cuda                                       all of it, about a minute on an H200
       build/cuda/bench_nbody --only methods,step --csv nbody.csv
       build/cuda/bench_nbody --only leaf,pareto             a group that is named does more
       build/cuda/bench_nbody --small      does it work at all? (also on the emulator)
       groups: pairs methods stages depth direction length pareto leaf clumps step; only when named:
       scaling largest automatic deep auto defaults points

   The source's figures (002: Kalms, section 7) were measured on a GeForce GTX 980; they are not
   printed in its text, but for two: at 100k bodies the methods were about 5 times faster than all
   pairs on the GPU, and 10 steps/s were wanted. */

#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "nbody.h"
#include "tests/bench/bench_gpu.h"
#include "tests/bench/nbody_bench.h"
#include "tests/bench/scaling_gpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace {

void must(nbody_result result)
{
    if (result == NBODY_OK) return;
    std::printf("%s\n", nbody_result_text(result));
    std::exit(1);
}

/* ---- bodies and evaluations on the device ---------------------------------------------------- */

struct device_bodies {
    bodies b;
    device_array<nbody_real> pos, acc;

    explicit device_bodies(const bodies &from)
        : b(from), pos(2 * std::size_t(from.n)), acc(2 * std::size_t(from.n))
    {
        pos.upload(b.pos);
    }
    ~device_bodies() { free_bodies(&b); }
};

struct evaluator {
    device_bodies &on;
    nbody_desc desc;
    nbody_cuda gpu = {};
    nbody_real *potential = nullptr;

    evaluator(device_bodies &bodies_, const nbody_desc &how) : on(bodies_), desc(how)
    {
        must(nbody_cuda_reserve(&gpu, &desc, on.b.n, stream));
    }
    evaluator(const evaluator &) = delete;
    evaluator &operator=(const evaluator &) = delete;
    ~evaluator() { nbody_cuda_free(&gpu); }

    void run()
    {
        must(nbody_cuda_fields(&gpu, &desc, on.pos.data, 0, nullptr, on.b.n, on.acc.data, potential,
                               stream));
    }

    nbody_error error_of(int32_t samples, uint32_t seed)
    {
        device_array<nbody_error> to(1);
        must(nbody_cuda_estimate(&gpu, on.acc.data, samples, seed, to.data, stream));
        return to.download()[0];
    }
    nbody_error error()
    {
        nbody_error errors[ESTIMATES];
        for (uint32_t k = 0; k < ESTIMATES; k++)
            errors[k] = error_of(samples_for(on.b.n, 1e9), k + 1);
        return median_error(errors);
    }
    nbody_counts counts()
    {
        nbody host = {};
        nbody_counts found = {};
        must(nbody_cuda_download(&host, &gpu, stream));
        must(nbody_count(&host, &found));
        nbody_free(&host);
        return found;
    }
};

/* Work of the stream, recorded once. */
struct recorded {
    cudaGraphExec_t exec = nullptr;

    template <class Work>
    explicit recorded(Work work)
    {
        cudaGraph_t graph;
        must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        work();
        must(cudaStreamEndCapture(stream, &graph));
        must(cudaGraphInstantiate(&exec, graph, 0));
        must(cudaGraphDestroy(graph));
    }
    recorded(const recorded &) = delete;
    recorded &operator=(const recorded &) = delete;
    ~recorded() { must(cudaGraphExecDestroy(exec)); }
    void launch() { must(cudaGraphLaunch(exec, stream)); }
};

/* search: of what only looks for the best of many */
constexpr int all_runs = BENCH_SAMPLES, search_runs = 3;

/* As gpu_ms, with at most `most` runs, and 2 of what takes longer than 50 ms; --small: 1. */
template <class Work>
double timed(Work work, int most = all_runs)
{
    int const runs = bench.runs;
    work();
    double const once = sample_ms(work, 0);
    if (bench.small) return once;
    bench.runs = std::min(runs, once > 50 ? 2 : most);
    double const ms = gpu_ms(work);
    bench.runs = runs;
    return ms;
}

/* ---- the direct sum -------------------------------------------------------------------------- */

constexpr int32_t whole = 1000000; /* larger ones are scaled */

double direct_ms(device_bodies &on)
{
    if (on.b.n > whole) return pair_ms * on.b.n * on.b.n;
    evaluator e(on, direct_desc(&on.b));
    return timed([&] { e.run(); });
}

void check_direct(evaluator &e)
{
    e.run();
    must(nbody_cuda_check(&e.gpu, nullptr, stream));
    bench_check(e.error_of(200, 1).share <= (sizeof(nbody_real) == sizeof(float) ? 1e-6 : 1e-14),
                "DIRECT: more than rounding");
}

/* What a plain kernel reaches that does nothing else: sums of floats without compensation, no
   potentials, no order of its own, equal masses if `masses` is NULL. A thread has 4 targets; a
   block has 512, and one of `parts` portions of the sources, which it adds by atomics. */
constexpr int plain_threads = 128, plain_targets = 4;

/* 1 / sqrt(u), without the instructions for denormal numbers. */
__device__ __forceinline__ float plain_root(float u)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(u));
    return root;
#else
    return rsqrtf(u);
#endif
}
[[maybe_unused]] __device__ __forceinline__ double plain_root(double u) { return rsqrt(u); }

template <bool Masses>
__global__ void __launch_bounds__(plain_threads)
    plain_pairs_kernel(const nbody_real *pos, const nbody_real *masses, int32_t n, int32_t parts,
                       nbody_real soft2, nbody_real *acc)
{
    __shared__ nbody_real tile[3][plain_threads];
    nbody_real x[plain_targets], y[plain_targets], ax[plain_targets] = {}, ay[plain_targets] = {};
    int32_t const first = static_cast<int32_t>(blockIdx.x) / parts * plain_threads * plain_targets +
                          static_cast<int32_t>(threadIdx.x),
                  part = static_cast<int32_t>(blockIdx.x) % parts;
    int32_t const from = static_cast<int32_t>(int64_t{n} * part / parts),
                  end = static_cast<int32_t>(int64_t{n} * (part + 1) / parts);
#pragma unroll
    for (int t = 0; t < plain_targets; t++) {
        int32_t const i = first + t * plain_threads;
        x[t] = pos[2 * (i < n ? i : 0)];
        y[t] = pos[2 * (i < n ? i : 0) + 1];
    }
    for (int32_t s = from; s < end; s += plain_threads) {
        int32_t const i = s + static_cast<int32_t>(threadIdx.x);
        __syncthreads();
        tile[0][threadIdx.x] = i < end ? pos[2 * i] : nbody_real(1e10);
        tile[1][threadIdx.x] = i < end ? pos[2 * i + 1] : nbody_real(1e10);
        if (Masses) tile[2][threadIdx.x] = i < end ? masses[i] : nbody_real(0);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < plain_threads; k++) {
            nbody_real const sx = tile[0][k], sy = tile[1][k], m = tile[2][k];
#pragma unroll
            for (int t = 0; t < plain_targets; t++) {
                nbody_real const dx = sx - x[t], dy = sy - y[t],
                                 root = plain_root(dx * dx + (dy * dy + soft2)),
                                 g = Masses ? m * root * (root * root) : root * (root * root);
                ax[t] += g * dx;
                ay[t] += g * dy;
            }
        }
    }
#pragma unroll
    for (int t = 0; t < plain_targets; t++) {
        int32_t const i = first + t * plain_threads;
        if (i >= n) continue;
        atomicAdd(&acc[2 * i], ax[t]);
        atomicAdd(&acc[2 * i + 1], ay[t]);
    }
}

template <bool Masses> void plain_pairs(device_bodies &on, const nbody_real *masses)
{
    int32_t const blocks = (on.b.n - 1) / (plain_threads * plain_targets) + 1,
                  parts = std::min(8000 / blocks, (on.b.n - 1) / plain_threads) + 1;
    double const soft2 = on.b.softening * on.b.softening + 1e-24;
    must(cudaMemsetAsync(on.acc.data, 0, on.acc.count * sizeof(nbody_real), stream));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks * parts));
    config.blockDim = dim3(plain_threads);
    config.stream = stream;
    must(cudaLaunchKernelEx(&config, plain_pairs_kernel<Masses>,
                            static_cast<const nbody_real *>(on.pos.data), masses, on.b.n, parts,
                            static_cast<nbody_real>(soft2), on.acc.data));
}

/* Bars and peers (targets): T terms/s. */
void pairs_line(const device_bodies &on, const char *method, double ms, double bar, double peer)
{
    double const rate = 1e-9 * on.b.n * on.b.n / ms;
    bench_row_s row = {};
    row.group = "pairs";
    row.workload = on.b.name;
    row.method = method;
    row.n = on.b.n;
    row.ms = ms;
    std::printf("%-17s %-36s", on.b.name, method);
    bench_number(ms, 9);
    bench_number(rate, 12);
    bench_number(bar, 6);
    std::printf(" %-6s", bar > 0 ? verdict(rate >= bar) : "");
    bench_number(peer, 8);
    std::printf("\n");
    std::fflush(stdout);
    bench_csv(&row);
}

void pairs_rows(int32_t n, double softening)
{
    device_bodies on(square_bodies(n, softening));
    bool const given = n >= 100000 && sizeof(nbody_real) == sizeof(float);
    evaluator e(on, direct_desc(&on.b));
    pairs_line(on, "DIRECT, 1/d^2", timed([&] { e.run(); }), given ? 2.8 : 0, given ? 2.76 : 0);
    check_direct(e);
    e.desc.law = NBODY_INVERSE;
    pairs_line(on, "DIRECT, 1/d", timed([&] { e.run(); }), given ? 2.8 : 0, given ? 3.23 : 0);
    check_direct(e);
    e.desc.law = NBODY_INVERSE_SQUARE;
    e.run(); /* what the check compares with */
    device_array<nbody_real> masses(static_cast<std::size_t>(n));
    masses.upload(std::vector<nbody_real>(masses.count, 1).data());
    pairs_line(on, "plain kernel, 1/d^2",
               timed([&] { plain_pairs<true>(on, masses.data); }), 0, 0);
    bench_check(e.error_of(200, 1).mean_share <= 1e-4, "plain kernel: forces");
    pairs_line(on, "plain kernel, 1/d^2, equal masses",
               timed([&] { plain_pairs<false>(on, nullptr); }), 0, 0);
    if (n > 100000) return;
    device_array<nbody_real> potential(static_cast<std::size_t>(n));
    e.potential = potential.data;
    pairs_line(on, "DIRECT, 1/d^2, with potentials", timed([&] { e.run(); }), 0, 0);
}

void bench_pairs(const std::vector<int32_t> &sizes)
{
    std::printf("\npairs: the direct sum\n%-17s %-36s %9s %12s %6s %-6s %8s\n", "workload",
                "method", "ms", "T terms/s", "bar", "", "targets");
    for (int32_t n : sizes) pairs_rows(n, 0);
    pairs_rows(sizes.front(), SOFT);
}

/* ---- one evaluation as a line of a table ----------------------------------------------------- */

measured line_of(const char *group, const device_bodies &on, const std::string &method, double ms)
{
    measured r = {};
    r.group = group;
    r.of = &on.b;
    std::snprintf(r.method, sizeof r.method, "%s", method.c_str());
    r.ms = ms;
    return r;
}

/* Times it, counts what the tree cost, and compares a sample with the direct sum. */
measured evaluate(evaluator &e, const char *group, const std::string &method, int most = all_runs)
{
    measured r = line_of(group, e.on, method, timed([&] { e.run(); }, most));
    must(nbody_cuda_check(&e.gpu, nullptr, stream));
    nbody_counts const counts = e.counts();
    set_counts(&r, &counts);
    r.error = e.error();
    return r;
}

measured evaluate_once(device_bodies &on, const nbody_desc &desc, const char *group,
                       const std::string &method, int most = all_runs)
{
    evaluator e(on, desc);
    return evaluate(e, group, method, most);
}

/* ---- methods: time against n ----------------------------------------------------------------- */

/* The bars are for 2.76 T terms/s (nbody.md section 9); on other GPUs they go with the all-pairs
   rate. */
double gpu_scale = 1;

void find_scale()
{
    cudaDeviceProp properties;
    int device;
    must(cudaGetDevice(&device));
    must(cudaGetDeviceProperties(&properties, device));
    if (!std::strstr(properties.name, "H200")) gpu_scale = pair_ms * 2.76e9;
}

void set_bars(measured &r, int s)
{
    static const double at_1m[SETTINGS] = {4.5, 2, 0, 0.75, 0, 2.5};
    r.goal = error_goal(s, r.of->n);
    if (sizeof(nbody_real) != sizeof(float)) return;
    if (r.of->n == 1000000) r.bar_ms = gpu_scale * at_1m[s];
    if (r.of->n == 10000000 && s == C4) r.bar_ms = gpu_scale * 6;
}

/* The tree of the source, and one as deep as each place needs; that also recorded in a graph. */
void method_rows(device_bodies &on, int s)
{
    std::string const name = settings[s].name;
    bool const bars = on.b.softening <= 0;
    measured even = evaluate_once(on, even_desc_of(&settings[s], &on.b), "methods", name);
    evaluator e(on, desc_of(&settings[s], &on.b));
    measured automatic = evaluate(e, "methods", name + ", automatic depth");
    recorded graph([&] { e.run(); });
    measured captured = automatic;
    captured.ms = timed([&] { graph.launch(); });
    must(nbody_cuda_check(&e.gpu, nullptr, stream));
    captured.error = e.error();
    std::snprintf(captured.method, sizeof captured.method, "%s, automatic, graph", name.c_str());
    for (measured *r : {&even, &automatic, &captured}) {
        if (bars) set_bars(*r, s);
        if (bars) check_error(s, &on.b, &r->error, r->method);
        print_result(r);
    }
}

void direct_row(device_bodies &on)
{
    on.b.direct_ms = direct_ms(on);
    measured r =
        line_of("methods", on, on.b.n <= whole ? "DIRECT" : "DIRECT (scaled)", on.b.direct_ms);
    r.levels = 1;
    r.terms = on.b.n;
    print_result(&r);
}

void bench_methods(const std::vector<int32_t> &sizes)
{
    table_title("methods: one evaluation against n, sort included (source: Figure 16; at 100k "
                "about 5 times the direct sum)",
                nullptr);
    for (int32_t n : sizes) {
        device_bodies on(square_bodies(n, 0));
        direct_row(on);
        for (int s = 0; s < SETTINGS; s++) method_rows(on, s);
    }
    device_bodies soft(square_bodies(sizes[sizes.size() / 2], SOFT));
    direct_row(soft);
    for (int s = 0; s < SETTINGS; s++) method_rows(soft, s);
}

/* ---- stages: section 6.3 of the source ------------------------------------------------------- */

struct stage { const char *name; nbody_stage stage; };
const stage stages[] = {{"FAST", NBODY_FAST},
                        {"SHARED_MEMORY", NBODY_SHARED_MEMORY},
                        {"MANY_THREADS", NBODY_MANY_THREADS},
                        {"ONE_THREAD", NBODY_ONE_THREAD}};

/* The three plain stages have the bits of the serial code; FAST rounds otherwise. */
void check_stage(const device_bodies &on, const nbody_desc &desc, nbody_stage stage,
                 std::vector<nbody_real> &first)
{
    std::vector<nbody_real> const got = on.acc.download();
    if (stage == NBODY_FAST) return;
    if (first.empty() && on.b.n <= 10000) {
        nbody serial = {};
        first.resize(got.size());
        must(nbody_accelerations(&serial, &desc, on.b.pos, 0, nullptr, on.b.n, first.data()));
        nbody_free(&serial);
    }
    if (first.empty()) first = got;
    else
        bench_check(std::memcmp(first.data(), got.data(), got.size() * sizeof got[0]) == 0,
                    "stages: other bits");
}

void stage_rows(device_bodies &on, const char *name, nbody_desc desc)
{
    std::vector<nbody_real> first;
    double fast = 0;
    for (const stage &s : stages) {
        if (s.stage == NBODY_ONE_THREAD && on.b.n > 1000) continue;
        desc.stage = s.stage;
        evaluator e(on, desc);
        int const most = s.stage == NBODY_ONE_THREAD ? search_runs : all_runs;
        measured r = evaluate(e, "stages", std::string(name) + ", " + s.name, most);
        if (s.stage == NBODY_FAST) fast = r.ms;
        r.base_ms = fast;
        print_result(&r);
        e.run();
        check_stage(on, desc, s.stage, first);
    }
}

void bench_stages(const std::vector<int32_t> &sizes)
{
    table_title("stages: the same sums, from the plainest kernels to the fastest (source: section "
                "6.3); trees of one depth",
                "FAST");
    for (int32_t n : sizes) {
        device_bodies on(square_bodies(n, 0));
        on.b.direct_ms = pair_ms * n * n;
        stage_rows(on, "DIRECT", direct_desc(&on.b));
        for (int s : {VP, FN8, C4})
            stage_rows(on, settings[s].name, even_desc_of(&settings[s], &on.b));
    }
}

/* ---- depth: the best number of levels for each n --------------------------------------------- */

constexpr int32_t shallowest = 3, deepest = 12;

double cell_of(evaluator &e, const char *group, const std::string &method)
{
    bench_row_s row = {};
    row.group = group;
    row.workload = e.on.b.name;
    row.method = method.c_str();
    row.n = e.on.b.n;
    row.ms = timed([&] { e.run(); }, search_runs);
    bench_cell(&row, row.ms);
    return row.ms;
}

void depth_line(device_bodies &on, int s)
{
    nbody_desc desc = desc_of(&settings[s], &on.b);
    int32_t const ours = nbody_levels_for(&desc, on.b.n);
    int32_t best = 0;
    double best_ms = 0, ours_ms = 0;
    bench_line(settings[s].name);
    for (int32_t levels = shallowest; levels <= deepest; levels++) {
        if (levels < ours - 2 || levels > ours + 2) { bench_number(0, 9); continue; }
        desc.levels = levels;
        evaluator e(on, desc);
        double const ms = cell_of(
            e, "depth", std::string(settings[s].name) + ", levels " + std::to_string(levels));
        if (levels == ours) ours_ms = ms;
        if (best == 0 || ms < best_ms) { best = levels; best_ms = ms; }
    }
    desc.levels = 0;
    evaluator e(on, desc);
    std::printf(" %6d %10d", static_cast<int>(best), static_cast<int>(ours));
    bench_number(best_ms > 0 ? ours_ms / best_ms : 0, 7);
    bench_number(timed([&] { e.run(); }, search_runs), 10);
    nbody_error const error = e.error();
    check_error(s, &on.b, &error, "depth");
}

void bench_depth(const std::vector<int32_t> &sizes)
{
    for (int32_t n : sizes) {
        device_bodies on(square_bodies(n, 0));
        std::string const title =
            std::string("depth: ms by levels, ") + on.b.name +
            "; `for`: nbody_levels_for, x: its time over the best; `auto`: ms at automatic depth";
        bench_matrix(title.c_str(), "levels");
        for (int32_t levels = shallowest; levels <= deepest; levels++)
            std::printf(" %9d", static_cast<int>(levels));
        std::printf(" %6s %10s %7s %10s", "best", "for", "x", "auto");
        for (int s = 0; s < SETTINGS; s++) depth_line(on, s);
        std::printf("\n");
    }
    print_source_depth();
}

/* ---- direction, length: the source's Figures 17 and 18 --------------------------------------- */

/* A thread for each body of the sample: its force in double, and as a plain sum of floats in
   order. */
__global__ void reference_kernel(const nbody_real *pos, int32_t n, int32_t samples, double soft2,
                                 references *to)
{
    int64_t const k = thread_index();
    if (k >= samples) return;
    int64_t const i = k * n / samples;
    double exact_x = 0, exact_y = 0;
    float x = 0, y = 0;
    for (int64_t j = 0; j < n; j++) {
        double const dx = static_cast<double>(pos[2 * j]) - static_cast<double>(pos[2 * i]);
        double const dy = static_cast<double>(pos[2 * j + 1]) - static_cast<double>(pos[2 * i + 1]);
        double const d2 = dx * dx + dy * dy + soft2,
                     g = j == i || d2 <= 0 ? 0 : 1 / (d2 * sqrt(d2));
        float const ex = static_cast<float>(pos[2 * j]) - static_cast<float>(pos[2 * i]);
        float const ey = static_cast<float>(pos[2 * j + 1]) - static_cast<float>(pos[2 * i + 1]);
        float const e2 = ex * ex + ey * ey + static_cast<float>(soft2),
                    h = j == i || e2 <= 0 ? 0 : 1 / (e2 * sqrtf(e2));
        exact_x += g * dx;
        exact_y += g * dy;
        x += h * ex;
        y += h * ey;
    }
    to[k] = {{exact_x, exact_y}, {static_cast<double>(x), static_cast<double>(y)}};
}

void add_all(deviations &all, int line, int size, const device_bodies &on,
             const std::vector<references> &r)
{
    std::vector<nbody_real> const acc = on.acc.download();
    int32_t const samples = static_cast<int32_t>(r.size());
    for (int32_t k = 0; k < samples; k++) {
        const nbody_real *from =
            acc.data() + 2 * static_cast<std::size_t>(sample_of(k, samples, on.b.n));
        double const a[2] = {static_cast<double>(from[0]), static_cast<double>(from[1])};
        add_sample(&all, line, size, a, &r[static_cast<std::size_t>(k)], samples);
    }
}

/* Where all bodies are the sample, nbody_cuda_estimate must find the same. */
void check_estimate(evaluator &e, const deviations &all, int line, int size)
{
    deviation const d = all.exact[line][size];
    nbody_error const found = e.error_of(e.on.b.n, 1);
    bench_check_total(found.samples, e.on.b.n, "nbody_cuda_estimate: not all bodies");
    bench_check(std::fabs(found.length - d.length) <= 1e-3 * d.length,
                "nbody_cuda_estimate: another error in length");
    bench_check(std::fabs(found.direction * DEGREES - d.degrees) <= 1e-3 * d.degrees,
                "nbody_cuda_estimate: another error in direction");
}

void deviations_of(deviations &all, int size, int32_t n)
{
    device_bodies on(square_bodies(n, 0));
    int32_t const samples = n <= 2000 ? n : ESTIMATES * samples_for(n, 1e8);
    device_array<references> d_references(static_cast<std::size_t>(samples));
    launch(samples, reference_kernel, on.pos.data, n, samples, 0.0, d_references.data);
    std::vector<references> const r = d_references.download();
    for (const references &one : r) add_sample(&all, LINE_PLAIN, size, one.plain, &one, samples);
    evaluator direct(on, direct_desc(&on.b));
    direct.run();
    add_all(all, LINE_DIRECT, size, on, r);
    for (int s = 0; s < SETTINGS; s++) {
        evaluator e(on, even_desc_of(&settings[s], &on.b));
        e.run();
        must(nbody_cuda_check(&e.gpu, nullptr, stream));
        add_all(all, LINE_METHODS + s, size, on, r);
        if (samples == n) check_estimate(e, all, LINE_METHODS + s, size);
    }
}

void bench_deviations(std::vector<int32_t> sizes)
{
    deviations all = {};
    if (sizes.size() > SIZES) sizes.resize(SIZES);
    int const count = static_cast<int>(sizes.size());
    for (int k = 0; k < count; k++) deviations_of(all, k, sizes[static_cast<std::size_t>(k)]);
    if (bench_wants("direction")) show_deviations("direction", &all, count, sizes.data());
    if (bench_wants("length")) show_deviations("length", &all, count, sizes.data());
    check_growth(&all, count);
}

/* ---- pareto: error against time -------------------------------------------------------------- */

void collect(std::vector<measured> &all, device_bodies &on, nbody_desc desc,
             const std::string &name, double share)
{
    desc.leaf = std::max(1, static_cast<int>(share * default_leaf(&desc, on.b.n)));
    all.push_back(evaluate_once(on, desc, "pareto", name + ", leaf " + std::to_string(desc.leaf),
                                search_runs));
}

/* Every setting, with leaves of the default size times `share`. */
void collect_settings(std::vector<measured> &all, device_bodies &on, double share)
{
    for (int32_t order : {1, 2})
        for (int32_t subcells : {2, 4, 8}) {
            nbody_desc desc = desc_of(&settings[VP], &on.b);
            desc.order = order;
            desc.subcells = subcells;
            collect(all, on, desc,
                    "VP order " + std::to_string(order) + ", " + std::to_string(subcells) + "^2",
                    share);
        }
    for (int32_t order : {1, 4, 6})
        for (int32_t subcells : {2, 4, 8}) {
            nbody_desc desc = desc_of(&settings[FN8], &on.b);
            if (order > 1 && subcells == 2) continue;
            desc.order = order;
            desc.subcells = subcells;
            collect(all, on, desc,
                    "FN order " + std::to_string(order) + ", centres " + std::to_string(subcells) +
                        "^2",
                    share);
        }
    for (int32_t order = 2; order <= NBODY_MAX_ORDER; order++) {
        nbody_desc desc = desc_of(&settings[C4], &on.b);
        desc.order = order;
        collect(all, on, desc, "C" + std::to_string(order), share);
    }
}

void bench_pareto(int32_t n)
{
    std::vector<measured> all;
    device_bodies on(square_bodies(n, 0));
    on.b.direct_ms = pair_ms * n * n;
    collect_settings(all, on, 1);
    if (bench_named("pareto"))
        for (double share : {0.5, 2.0}) collect_settings(all, on, share);
    table_title(
        "pareto: error against time at automatic depth; < : faster than all that are more exact",
        nullptr);
    print_pareto(all.data(), static_cast<int>(all.size()));
}

/* ---- leaf: at how many bodies should a cell be divided? -------------------------------------- */

const int32_t leaves[] = {8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384};

/* ns per body: the geometric mean over numbers of bodies. leaf 0: the default. */
double leaf_ns(const std::vector<std::unique_ptr<device_bodies>> &all, nbody_desc desc,
               int32_t leaf)
{
    double product = 1;
    desc.leaf = leaf;
    for (const auto &on : all) {
        evaluator e(*on, desc);
        product *= 1e6 * timed([&] { e.run(); }, search_runs) / on->b.n;
        if (leaf == 0) bench_check(e.error_of(100, 1).mean_share <= 5e-3, "leaf");
    }
    return std::pow(product, 1.0 / static_cast<double>(all.size()));
}

void leaf_line(const std::vector<std::unique_ptr<device_bodies>> &all, const std::string &name,
               const nbody_desc &desc)
{
    int32_t best = 0;
    double best_ns = 0;
    bench_line(name.c_str());
    for (int32_t leaf : leaves) {
        double const ns = leaf_ns(all, desc, leaf);
        leaf_cell(&all[0]->b, name.c_str(), leaf, ns);
        if (best == 0 || ns < best_ns) { best = leaf; best_ns = ns; }
    }
    double const ns = leaf_ns(all, desc, 0);
    std::printf(" %6d %8d", static_cast<int>(best),
                static_cast<int>(default_leaf(&desc, all[0]->b.n)));
    bench_number(ns, 9);
    bench_number(ns / best_ns, 7);
}

void bench_leaf(const std::vector<int32_t> &sizes)
{
    for (int32_t n : sizes) {
        if (!bench_named("leaf") && n != sizes.back()) continue;
        bodies made[LEAF_SIZES];
        std::vector<std::unique_ptr<device_bodies>> all;
        leaf_bodies(made, n);
        for (const bodies &b : made) all.emplace_back(new device_bodies(b));
        leaf_title(n);
        for (int32_t leaf : leaves) std::printf(" %9d", static_cast<int>(leaf));
        std::printf(" %6s %8s %9s %7s", "best", "default", "ns", "x");
        for (int s : {VP, FN8, FN4C}) leaf_line(all, settings[s].name, desc_of(&settings[s], made));
        for (int32_t order = 2; order <= NBODY_MAX_ORDER; order++) {
            nbody_desc desc = desc_of(&settings[C4], made);
            if (!bench_named("leaf") && order != 4 && order != 6 && order != 8) continue;
            desc.order = order;
            leaf_line(all, "C" + std::to_string(order), desc);
        }
        std::printf("\n");
    }
}

/* ---- automatic: what automatic depth costs, by levels (launches, bits of keys) and leaf ------ */

constexpr int32_t auto_levels[] = {8, 9, 11, 14, 17}, auto_leaves[] = {0, 80, 100, 128, 160};

void bench_automatic(int32_t n)
{
    for (auto make : {+[](int32_t count) { return square_bodies(count, 0); }, clump_bodies}) {
        device_bodies on(make(n));
        std::string const title = std::string("automatic: ms of C4, ") + on.b.name +
                                  "; leaf 0: all leaves on the last level; default: 17, 80";
        bench_matrix(title.c_str(), "leaf");
        for (int32_t levels : auto_levels) std::printf(" %9d", static_cast<int>(levels));
        for (int32_t leaf : auto_leaves) {
            bench_line(std::to_string(leaf).c_str());
            for (int32_t levels : auto_levels) {
                nbody_desc desc = desc_of(&settings[C4], &on.b);
                if (leaf == 0 && levels > 9) { bench_number(0, 9); continue; }
                desc.leaf = leaf;
                desc.levels = levels;
                evaluator e(on, desc);
                (void)cell_of(e, "automatic", "levels " + std::to_string(levels) + ", leaf " +
                                                  std::to_string(leaf));
            }
        }
        std::printf("\n");
    }
}

/* ---- auto: what NBODY_AUTO takes, beside DIRECT and trees of many leaves --------------------- */

/* A row is one input, size, order, law and output. All run one after another; the same nbody for
   all, so that none waits for memory. */
struct auto_row {
    device_bodies &on;
    nbody_cuda &gpu;
    nbody_desc desc;
    nbody_real *potential;

    double ms(const nbody_desc &how)
    {
        return timed(
            [&] {
                must(nbody_cuda_fields(&gpu, &how, on.pos.data, 0, nullptr, on.b.n, on.acc.data,
                                       potential, stream));
            },
            search_runs);
    }
    double direct()
    {
        nbody_desc how = desc;
        how.method = NBODY_DIRECT;
        return on.b.n <= 65536 ? ms(how) : 0;
    }
    double tree(int32_t leaf)
    {
        nbody_desc how = desc;
        how.method = NBODY_FORCE_NODES;
        how.leaf = leaf;
        return ms(how);
    }
};

struct auto_worst { double ratio; int rows, above; };

void auto_line(auto_row &row, auto_worst &worst)
{
    static const int32_t sizes[] = {0, 24, 48, 64, 80, 100, 128, 160, 224, 320};
    char name[64];
    double const mine = row.ms(row.desc);
    bool const takes_direct = row.gpu.device.sim.desc.method == NBODY_DIRECT;
    double const direct = row.direct();
    double best = direct, tree = 0, usual = 0;
    int32_t leaf = 0;
    for (int32_t size : sizes) {
        if (size > row.on.b.n) continue;
        double const ms = row.tree(size);
        if (size == 0) usual = ms;
        if (tree <= 0 || ms < tree) { tree = ms; leaf = size; }
    }
    if (best <= 0 || tree < best) best = tree;
    std::snprintf(name, sizeof name, "%-14s %3d %4s %5g %s", row.on.b.name,
                  static_cast<int>(row.desc.order),
                  row.desc.law == NBODY_INVERSE ? "1/d" : "1/d2",
                  static_cast<double>(row.desc.softening), row.potential ? "fields" : "forces");
    std::printf("%-40s", name);
    bench_number(mine, 9);
    std::printf(" %-7s", takes_direct ? "direct" : "tree");
    bench_number(direct, 9);
    bench_number(usual, 9);
    bench_number(tree, 9);
    std::printf(" %6d", static_cast<int>(leaf));
    bench_number(mine / best, 7);
    std::printf("%s\n", mine > 1.2 * best ? "  above" : "");
    std::fflush(stdout);
    worst.rows++;
    worst.above += mine > 1.2 * best;
    worst.ratio = std::max(worst.ratio, mine / best);
    bench_row_s csv = {};
    csv.group = "auto";
    csv.workload = row.on.b.name;
    csv.method = name;
    csv.n = row.on.b.n;
    csv.ms = mine;
    csv.peer_ms = best;
    bench_csv(&csv);
}

/* One of `every` of all orders, laws and outputs. */
void auto_lines(device_bodies &on, nbody_cuda &gpu, int every, int first, auto_worst &worst)
{
    static const int32_t orders[] = {4, 8, 1, 6, 2, 12, 3, 10};
    device_array<nbody_real> potential(static_cast<std::size_t>(on.b.n));
    for (int k = first % every; k < 64; k += every) {
        auto_row row = {on, gpu, {}, k / 4 % 2 ? potential.data : nullptr};
        row.desc.order = orders[k / 8];
        row.desc.law = k & 2 ? NBODY_INVERSE : NBODY_INVERSE_SQUARE;
        row.desc.softening = nbody_real(k & 1 ? 0.01 : 0);
        auto_line(row, worst);
    }
}

void bench_auto(const std::vector<int32_t> &sizes)
{
    auto_worst worst = {};
    nbody_cuda gpu = {};
    std::printf("\nauto: NBODY_AUTO beside the direct sum, the default tree, and the best of trees "
                "with leaves of 24 to 320\n%-40s %9s %-7s %9s %9s %9s %6s %7s\n",
                "input, order, law, softening", "auto ms", "", "direct", "tree", "best tree",
                "leaf", "ratio");
    for (std::size_t s = 0; s < sizes.size(); s++) {
        bodies (*const make[])(int32_t) = {
            [](int32_t count) { return square_bodies(count, 0); }, clump_bodies, galaxy_bodies};
        for (std::size_t k = 0; k < 3; k++) {
            device_bodies on(make[k](sizes[s]));
            auto_lines(on, gpu, sizes[s] > 200000 ? 21 : 7, static_cast<int>(3 * s + 2 * k), worst);
        }
    }
    nbody_cuda_free(&gpu);
    std::printf("auto: at worst %.2f times the best; %d of %d rows above 1.2\n", worst.ratio,
                worst.above, worst.rows);
}

/* ---- defaults: the call that leaves all to the header, beside the best setting --------------- */

/* All calls of one nbody, so that none waits for memory. */
struct default_calls {
    device_bodies &on;
    nbody_cuda &gpu;
    nbody_real *potential;

    void run(const nbody_desc &how)
    {
        must(nbody_cuda_fields(&gpu, &how, on.pos.data, 0, nullptr, on.b.n, on.acc.data, potential,
                               stream));
    }
    /* Few runs, and only one of what is far behind `best`; 0: any. */
    double ms(const nbody_desc &how, double best)
    {
        run(how);
        double const once = sample_ms([&] { run(how); }, 0.2);
        return bench.small || (best > 0 && once > 1.5 * best)
                   ? once
                   : timed([&] { run(how); }, search_runs);
    }
};

/* Tries a setting, and keeps the best. */
void try_setting(default_calls &calls, default_row &row, const nbody_desc &how)
{
    double const ms = calls.ms(how, row.best_ms);
    default_trial(&row, &how, ms);
}

/* Direct sums of few bodies, where NBODY_AUTO may take them; leaves of many sizes; all leaves on
   one level. Those that seem best are measured once more, in turn. */
void defaults_line(default_calls &calls, const char *name, const nbody_desc &desc)
{
    default_row row = default_row_of(&calls.on.b, name, &desc, calls.potential != nullptr);
    nbody_desc how = desc;
    row.ms = calls.ms(desc, 0);
    how.method = NBODY_DIRECT;
    if (desc.method == NBODY_AUTO && calls.on.b.n <= 65536) try_setting(calls, row, how);
    how.method = desc.method == NBODY_AUTO ? NBODY_FORCE_NODES : desc.method;
    for (int k = 0; k < DEFAULT_LEAVES; k++) {
        how.leaf = default_leaves[k];
        if (how.leaf < calls.on.b.n) try_setting(calls, row, how);
    }
    how.leaf = 0;
    int32_t const usual = nbody_levels_for(&how, calls.on.b.n);
    for (how.levels = usual > 3 ? usual - 1 : 3; how.levels <= usual + 1; how.levels++)
        try_setting(calls, row, how);
    for (int k = 0; k < 3; k++) {
        row.ms = std::min(row.ms, calls.ms(desc, 0));
        row.best_ms = std::min(row.best_ms, calls.ms(row.best, 0));
    }
    calls.run(desc);
    must(nbody_cuda_check(&calls.gpu, nullptr, stream));
    print_default(&row);
}

void defaults_rows(int32_t n)
{
    bodies (*const make[])(int32_t) = {[](int32_t count) { return square_bodies(count, 0); },
                                       clump_bodies, galaxy_bodies};
    for (int input = 0; input < (n > 1000000 ? 1 : 3); input++) {
        device_bodies on(make[input](n));
        device_array<nbody_real> potential(static_cast<std::size_t>(n));
        nbody_cuda gpu = {};
        for (int k = 0; k < DEFAULT_CASES; k++) {
            default_calls calls = {on, gpu, default_cases[k].potential ? potential.data : nullptr};
            defaults_line(calls, default_cases[k].name, default_desc_of(k));
        }
        nbody_cuda_free(&gpu);
    }
}

void bench_defaults(const std::vector<int32_t> &sizes)
{
    defaults_title();
    for (int32_t n : sizes) defaults_rows(n);
    defaults_end();
}

/* ---- deep: half of the bodies in a clump of 1e-6. Wall time, as such a build waits ----------- */

bodies deep_bodies(int32_t n)
{
    bodies b = square_bodies(n, 0);
    for (int32_t i = 1; i < n; i += 2)
        for (std::size_t a = 0; a < 2; a++) b.pos[2 * std::size_t(i) + a] *= nbody_real(1e-6);
    return b;
}

double wall_of(evaluator &e)
{
    double best = 0;
    for (int k = 0; k < 5; k++) {
        must(cudaStreamSynchronize(stream));
        double const begin = wall_ms();
        e.run();
        must(cudaStreamSynchronize(stream));
        double const ms = wall_ms() - begin;
        if (k == 1 || (k > 1 && ms < best)) best = ms;
    }
    return best;
}

void bench_deep(const std::vector<int32_t> &sizes)
{
    bench_matrix("deep: ms of C4, half of the bodies in a clump of 1e-6, by desc.levels", "n");
    std::printf(" %9s %9s %12s", "17", "49", "mean share");
    for (int32_t n : sizes) {
        device_bodies on(deep_bodies(n));
        nbody_desc desc = desc_of(&settings[C4], &on.b);
        bench_line(std::to_string(n).c_str());
        desc.leaf = default_leaf(&desc, n);
        for (int32_t levels : {NBODY_KEY_LEVELS + 0, NBODY_MAX_LEVELS + 0}) {
            desc.levels = levels;
            evaluator e(on, desc);
            std::printf(" %9.2f", wall_of(e));
            if (levels > NBODY_KEY_LEVELS) std::printf(" %12.2g", e.error_of(200, 1).mean_share);
        }
    }
    std::printf("\n");
}

/* ---- clumps: where bodies crowd -------------------------------------------------------------- */

/* The tree of the source at the depth that is best here: deeper, until it takes longer. */
nbody_desc best_even(device_bodies &on, int s)
{
    nbody_desc desc = even_desc_of(&settings[s], &on.b), best = desc;
    double best_ms = 0;
    for (; desc.levels <= 14; desc.levels++) {
        evaluator e(on, desc);
        double const ms = timed([&] { e.run(); }, 1);
        if (best_ms > 0 && ms > 1.2 * best_ms) break;
        if (best_ms <= 0 || ms < best_ms) { best_ms = ms; best = desc; }
    }
    return best;
}

void clump_row(device_bodies &on, int s, const std::string &name, const nbody_desc &desc,
               double *uniform)
{
    measured r = evaluate_once(on, desc, "clumps", name, search_runs);
    if (*uniform <= 0) *uniform = r.ms;
    r.base_ms = *uniform;
    print_result(&r);
    check_error(s, &on.b, &r.error, name.c_str());
}

void bench_clumps(int32_t n)
{
    bodies (*const make[])(int32_t) = {[](int32_t count) { return square_bodies(count, 0); },
                                       clump_bodies, galaxy_bodies};
    double uniform[SETTINGS] = {};
    table_title("clumps: the tree that adapts, and the source's tree at its best depth, on crowded "
                "input; goal of nbody.md "
                "(section 7, c): adaptive no slower than uniform",
                "uniform");
    for (int k = 0; k < 3; k++) {
        device_bodies on(make[k](n));
        on.b.direct_ms = pair_ms * n * n;
        for (int s : {VP, FN8, C4, C6, C8}) {
            std::string const name = settings[s].name;
            clump_row(on, s, name + ", automatic depth", desc_of(&settings[s], &on.b), &uniform[s]);
            if (k > 0) clump_row(on, s, name + ", one depth", best_even(on, s), &uniform[s]);
        }
    }
}

/* ---- step: whole time steps in a graph ------------------------------------------------------- */

/* All bodies together stay at rest: |sum of v| over the sum of all |v|. */
void check_momentum(const device_array<nbody_real> &vel)
{
    std::vector<nbody_real> const v = vel.download();
    double x = 0, y = 0, all = 0;
    for (std::size_t k = 0; k < v.size(); k += 2) {
        x += static_cast<double>(v[k]);
        y += static_cast<double>(v[k + 1]);
        all += std::hypot(static_cast<double>(v[k]), static_cast<double>(v[k + 1]));
    }
    bench_check(all > 0 && std::hypot(x, y) <= 1e-3 * all, "step: momentum, or no body moves");
}

void step_row(int32_t n, int s)
{
    device_bodies on(square_bodies(n, SOFT));
    device_array<nbody_real> vel(on.pos.count);
    nbody_desc const desc = s < 0 ? direct_desc(&on.b) : desc_of(&settings[s], &on.b);
    nbody_bodies all = {};
    nbody_cuda gpu = {};
    char note[48];
    all.pos = on.pos.data;
    all.vel = vel.data;
    all.acc = on.acc.data;
    all.n = n;
    must(cudaMemsetAsync(vel.data, 0, vel.count * sizeof(nbody_real), stream));
    must(nbody_cuda_reserve(&gpu, &desc, n, stream));
    auto const step = [&] {
        must(nbody_cuda_step(&gpu, &desc, &all, static_cast<nbody_real>(1e-6 / n), NBODY_LEAPFROG,
                             stream));
    };
    step(); /* the first also finds the forces to start with */
    recorded graph(step);
    measured r =
        line_of("step", on, s < 0 ? "DIRECT" : settings[s].name, timed([&] { graph.launch(); }));
    must(nbody_cuda_check(&gpu, nullptr, stream));
    nbody_cuda_free(&gpu);
    if (n == 100000) r.bar_ms = 100; /* the source's wish: 10 steps/s */
    std::snprintf(note, sizeof note, "%.4g steps/s", 1000 / r.ms);
    r.note = note;
    print_result(&r);
    check_momentum(vel);
}

void bench_step(const std::vector<int32_t> &sizes)
{
    table_title("step: leapfrog at automatic depth, one step as a graph (the source wanted 10 "
                "steps/s at 100k)",
                nullptr);
    for (int32_t n : sizes)
        for (int s = n > 100000 ? 0 : -1; s < SETTINGS; s++) step_row(n, s);
}

/* ---- points: nbody_cuda_fields_at beside the evaluation of as many bodies -------------------- */

/* Where bodies are, in no order; or on a grid over the square, row by row. */
std::vector<nbody_real> points_of(const bodies &b, bool grid)
{
    std::size_t const m = static_cast<std::size_t>(b.n);
    std::vector<nbody_real> points(b.pos, b.pos + 2 * m);
    std::size_t const side = static_cast<std::size_t>(std::sqrt(static_cast<double>(m)));
    nbody_real least[2] = {points[0], points[1]}, most[2] = {points[0], points[1]};
    for (std::size_t k = 0; k < 2 * m; k++) {
        least[k % 2] = std::min(least[k % 2], points[k]);
        most[k % 2] = std::max(most[k % 2], points[k]);
    }
    for (std::size_t k = 0; k < side * side && grid; k++)
        for (std::size_t a = 0; a < 2; a++)
            points[2 * k + a] = least[a] + (most[a] - least[a]) *
                                               static_cast<nbody_real>(a ? k / side : k % side) /
                                               static_cast<nbody_real>(side);
    return points;
}

/* ms of as many points as bodies. One by one: of a twentieth, times 20; those read no nodes. */
void points_row(device_bodies &on, const char *name, const nbody_desc &d, bool grid)
{
    std::vector<nbody_real> const points = points_of(on.b, grid);
    device_array<nbody_real> at(points.size()), acc(points.size());
    int32_t const n = on.b.n, few = n / 20;
    evaluator e(on, d);
    at.upload(points.data());
    auto const ask = [&](int32_t m) {
        must(nbody_cuda_fields_at(&e.gpu, at.data, 0, m, acc.data, nullptr, stream));
    };
    double const bodies_ms = timed([&] { e.run(); });
    double const points_ms = timed([&] { ask(n); });
    double const alone_ms = 20 * timed([&] { ask(few); });
    double const fresh_ms = timed([&] {
        must(nbody_cuda_build(&e.gpu, &d, on.pos.data, 0, nullptr, n, stream));
        ask(n);
    });
    std::printf("%-9s %8d %-14s %-7s", on.b.name, n, name, grid ? "grid" : "bodies");
    for (double ms : {bodies_ms, points_ms, fresh_ms, alone_ms}) bench_number(ms, 11);
    bench_number(points_ms / bodies_ms, 8);
    std::printf("\n");
    std::fflush(stdout);
    bench_value("points", on.b.name, name, n, points_ms / bodies_ms, "of the time of bodies");
}

void points_rows(device_bodies &on)
{
    static const struct { const char *name; nbody_law law; int order; nbody_core core;
                          double softening; int periodic; } rows[] = {
        {"C4", NBODY_INVERSE_SQUARE, 4, NBODY_PLUMMER, 0, 0},
        {"C8", NBODY_INVERSE_SQUARE, 8, NBODY_PLUMMER, 0, 0},
        {"C4, 1/d", NBODY_INVERSE, 4, NBODY_PLUMMER, 0, 0},
        {"C4, Gaussian", NBODY_VORTEX, 4, NBODY_GAUSSIAN, 0.001, 0},
        {"C4, periodic", NBODY_INVERSE_SQUARE, 4, NBODY_PLUMMER, 0, 1}};
    for (auto const &row : rows)
        for (bool grid : {false, true}) {
            nbody_desc d = {};
            d.method = NBODY_FORCE_NODES;
            d.law = row.law;
            d.order = row.order;
            d.core = row.core;
            d.softening = static_cast<nbody_real>(row.softening);
            d.periodic = row.periodic;
            d.size = 1;
            if (on.b.n > 100000 && row.core == NBODY_GAUSSIAN) continue;
            points_row(on, row.name, d, grid);
        }
}

void bench_points(const std::vector<int32_t> &sizes)
{
    std::printf("\npoints: as many as bodies; ms of build and forces, of points, of build and "
                "points, of points one by one\n");
    for (int32_t n : sizes) {
        device_bodies even(square_bodies(n, 0)), clumps(clump_bodies(n));
        points_rows(even);
        points_rows(clumps);
    }
}

/* ---- scaling, largest: see scaling_gpu.h ----------------------------------------------------- */

/* The default: FORCE_NODES of order 4 over a tree that is as deep as each place needs. */
struct body_case {
    static constexpr const char *first = "nbody: forces, order 4", *second = nullptr;
    static constexpr int64_t most = (int64_t{1} << 30) - 512;
    int32_t n;
    nbody_desc desc = {};
    device_array<nbody_real> pos, acc;
    nbody_cuda gpu = {};

    explicit body_case(int32_t bodies_)
        : n(bodies_), pos(2 * static_cast<std::size_t>(n)), acc(2 * static_cast<std::size_t>(n))
    {
        spread(pos);
        must(nbody_cuda_reserve(&gpu, &desc, n, stream));
    }
    body_case(const body_case &) = delete;
    body_case &operator=(const body_case &) = delete;
    ~body_case() { nbody_cuda_free(&gpu); }
    void build()
    {
        must(nbody_cuda_accelerations(&gpu, &desc, pos.data, 0, nullptr, n, acc.data, stream));
    }
    void search() {}
    double arrays() const { return held_by(gpu.block); }
    double space() const { return held_by(gpu.scratch); }
    void check()
    {
        device_array<nbody_error> error(1);
        int32_t const samples = n > 100000000 ? 10 : 100;
        must(nbody_cuda_check(&gpu, nullptr, stream));
        must(nbody_cuda_estimate(&gpu, acc.data, samples, 1, error.data, stream));
        bench_check(error.download()[0].mean_share <= share_bar(C4), "scaling: forces");
    }
};

/* ---- all of it ------------------------------------------------------------------------------- */

/* Those of a list that the run has time for; --n: that one. */
std::vector<int32_t> sizes_of(std::initializer_list<int32_t> list)
{
    std::vector<int32_t> sizes;
    if (bench.n) return {bench.n};
    for (int32_t n : list)
        if (!bench.quick || n <= 100000) sizes.push_back(n);
    return sizes;
}

/* More for a curve. */
std::vector<int32_t> method_sizes()
{
    if (!bench_named("methods")) return sizes_of({1000, 10000, 100000, 1000000, 10000000});
    return sizes_of({1000, 3000, 10000, 30000, 100000, 300000, 1000000, 3000000, 10000000});
}

void measure_pair()
{
    device_bodies on(square_bodies(bench.small ? bench.n : bench.quick ? 100000 : 1000000, 0));
    pair_ms = direct_ms(on) / on.b.n / on.b.n;
}

} // namespace

int main(int argc, char **argv)
{
    bench_start(
        argc, argv, "bench_nbody_cuda",
        "pairs,methods,stages,depth,direction,length,pareto,leaf,clumps,step,scaling,largest,"
        "automatic,deep,auto,defaults,points");
    double const begin = wall_ms();
    start_gpu();
    print_gpu("nbody.h", nbody_version());
    measure_pair();
    find_scale();
    std::printf("%s; all-pairs rate of this run: %.3f T terms/s (targets: 2.76)\n",
                sizeof(nbody_real) == sizeof(float) ? "float" : "double", 1e-9 / pair_ms);
    if (bench_wants("pairs")) bench_pairs(sizes_of({100000, 1000000}));
    if (bench_wants("methods")) bench_methods(method_sizes());
    if (bench_wants("stages")) bench_stages(sizes_of({1000, 10000, 100000}));
    if (bench_wants("depth")) bench_depth(sizes_of({10000, 100000, 1000000}));
    if (bench_wants("direction") || bench_wants("length"))
        bench_deviations(sizes_of({1000, 10000, 100000, 1000000}));
    if (bench_wants("pareto")) bench_pareto(sizes_of({100000, 1000000}).back());
    if (bench_wants("leaf")) bench_leaf(sizes_of({100000, 1000000}));
    if (bench_wants("clumps")) bench_clumps(sizes_of({100000, 1000000}).back());
    if (bench_wants("step")) bench_step(sizes_of({100000, 1000000}));
    if (bench_named("automatic")) bench_automatic(sizes_of({100000, 1000000}).back());
    if (bench_named("auto"))
        bench_auto(sizes_of({100, 1000, 2000, 3000, 4000, 6000, 8000, 10000, 12000, 16000, 24000,
                             32000, 50000, 100000, 1000000}));
    if (bench_named("defaults"))
        bench_defaults(sizes_of({1000, 3000, 10000, 30000, 100000, 200000, 400000, 1000000,
                                 10000000}));
    if (bench_named("deep")) bench_deep(sizes_of({10000, 100000, 1000000}));
    if (bench_named("points")) bench_points(sizes_of({100000, 1000000}));
    if (bench_named("scaling")) bench_scaling<body_case>();
    if (bench_named("largest")) bench_largest<body_case>();
    stop_gpu();
    std::printf("\n%.1f s in all", (wall_ms() - begin) * 1e-3);
    return bench_end();
}
