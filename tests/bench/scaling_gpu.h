/* scaling_gpu.h - time and memory against the number of particles, up to the largest run that fits:
   groups `scaling` and `largest` of the four bench_*.cu. C++17, for one .cu file, after
   bench_gpu.h.
   SPDX-License-Identifier: MIT OR Unlicense

   A header brings a struct (a "case") that makes its input for n particles and knows how to do its
   work:

       struct grid_case {
           static constexpr const char *first = "ugrid: build", *second = "ugrid: count neighbours";
                                                     (second NULL: there is none)
           static constexpr int64_t most = ...;             as many particles as the header takes
           explicit grid_case(int32_t n);
           void build(); void search();                     the two parts
           double arrays() const, space() const;            bytes of the header's own blocks: of
                                                            the structure, and work space
           void check();                                    by bench_check
       };

   Memory is given twice: the header's own blocks, also in their two parts, and what the GPU has
   less than before (input and results included). */

#ifndef SCALING_GPU_H
#define SCALING_GPU_H

namespace {

/* of what is free, for the largest run: allocators round up, the driver wants some too */
constexpr double part_of_memory = 0.93;
/* where bytes per particle are measured, from which the largest run follows */
constexpr int32_t measure_at = 10000000;

__device__ uint32_t mixed(uint64_t k)
{
    return hash(static_cast<uint32_t>(k) ^ hash(static_cast<uint32_t>(k >> 32) + 0x9E3779B9u));
}

/* Evenly spread numbers in 0 .. 1, made where they are needed: a hundred million from the host
   would take seconds. */
template <class Real>
__global__ void spread_kernel(Real *numbers, int64_t count)
{
    int64_t const k = thread_index();
    if (k < count)
        numbers[k] = static_cast<Real>(mixed(static_cast<uint64_t>(k)) >> 8) *
                     static_cast<Real>(1.0 / 16777216);
}

template <class Real>
void spread(device_array<Real> &numbers)
{
    int64_t const count = static_cast<int64_t>(numbers.count);
    launch(count, spread_kernel<Real>, numbers.data, count);
}

template <class Block, int Count>
double held_by(const Block (&blocks)[Count])
{
    double sum = 0;
    for (const Block &block : blocks) sum += static_cast<double>(block.bytes);
    return sum;
}

double free_memory()
{
    std::size_t free = 0, total = 0;
    must(cudaStreamSynchronize(stream));
    must(cudaMemGetInfo(&free, &total));
    return static_cast<double>(free);
}

/* What one run told. */
struct scaled { double first_ms, second_ms, arrays, space, taken; };

template <class Case>
scaled scale(int32_t n)
{
    double const before = free_memory();
    Case c(n);
    scaled s = {};
    s.first_ms = gpu_ms([&] { c.build(); });
    if (Case::second) s.second_ms = gpu_ms([&] { c.search(); });
    s.taken = before - free_memory();
    s.arrays = c.arrays();
    s.space = c.space();
    c.check();
    return s;
}

/* The parts of the bytes: "ugrid: arrays", "ugrid: work space". */
template <class Case>
void parts_rows(const char *group, int32_t n, const scaled &s)
{
    std::string const first = Case::first, header = first.substr(0, first.find(':'));
    std::printf("  arrays %.1f, work space %.1f bytes a particle\n", s.arrays / n, s.space / n);
    bench_value(group, "bytes", (header + ": arrays").c_str(), n, s.arrays / n, "B");
    bench_value(group, "bytes", (header + ": work space").c_str(), n, s.space / n, "B");
}

template <class Case>
void scaling_rows(const char *group, int32_t n, const scaled &s)
{
    bench_scaling_row(group, "uniform", Case::first, n, s.first_ms, (s.arrays + s.space) / n);
    if (Case::second) bench_scaling_row(group, "uniform", Case::second, n, s.second_ms, 0);
    parts_rows<Case>(group, n, s);
}

template <class Case>
void bench_scaling()
{
    int32_t sizes[BENCH_SCALES];
    int const count = bench_scales(sizes);
    bench_scaling_title(
        "scaling: time against n, evenly spread particles; bytes that the header holds");
    for (int k = 0; k < count; k++) scaling_rows<Case>("scaling", sizes[k], scale<Case>(sizes[k]));
}

/* As many as memory holds, if a particle takes as much of it as at the size measured; in whole
   millions. */
template <class Case>
int32_t largest_n(double bytes_each)
{
    int64_t n = static_cast<int64_t>(part_of_memory * free_memory() / bytes_each);
    if (n > Case::most) n = Case::most;
    return static_cast<int32_t>(n > 1000000 ? n / 1000000 * 1000000 : n);
}

/* Where memory ends: 100 million, and the largest run that fits. */
template <class Case>
void bench_largest()
{
    int32_t const hundred = 100000000, at = bench.small ? bench.n : measure_at;
    bench_scaling_title("largest: 100 million, and as many as memory holds");
    scaled const small = scale<Case>(at);
    double const held = small.arrays + small.space,
                 each = small.taken > 0 ? small.taken / at : held / at + 16;
    int32_t const n = bench.small ? at : largest_n<Case>(each);
    std::printf("%.1f GB free, %.1f bytes a particle at %d with input and results: %d particles\n",
                free_memory() * 1e-9, each, static_cast<int>(at), static_cast<int>(n));
    if (n >= hundred) scaling_rows<Case>("largest", hundred, scale<Case>(hundred));
    scaled const s = scale<Case>(n);
    scaling_rows<Case>("largest", n, s);
    bench_value("largest", "memory", Case::first, n, s.taken / n, "B in all");
    bench_value("largest", "limit", Case::first, n, n == Case::most / 1000000 * 1000000 ? 1 : 0,
                "by ids");
}

} // namespace

#endif /* SCALING_GPU_H */
