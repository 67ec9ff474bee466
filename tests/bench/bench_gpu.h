/* bench_gpu.h - what the GPU's benchmark programs share: errors, device arrays, timing, ceilings.
   For one .cu file.
   SPDX-License-Identifier: MIT OR Unlicense

   GPU time: each run is queued behind a kernel that spins until all of it is in the queue, between
   two events. So neither the CPU nor the way to the GPU is in it, as in a program that keeps the
   GPU busy. */

#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "tests/bench/bench.h"

#include <cub/cub.cuh>

#include <chrono>
#include <string>
#include <vector>

namespace {

/* ---- CUDA, with every error the end ---------------------------------------------------------- */

constexpr int block_size = 256;
cudaStream_t stream;

void must(cudaError_t error)
{
    if (error == cudaSuccess) return;
    std::printf("CUDA: %s\n", cudaGetErrorString(error));
    std::exit(1);
}

/* One thread for each of `threads` items. */
template <class... Parameters, class... Arguments>
void launch(int64_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((threads + block_size - 1) / block_size));
    config.blockDim = dim3(block_size);
    config.stream = stream;
    must(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

__device__ int64_t thread_index()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/* Device memory for `count` elements; freed at the end of its scope. */
template <class T>
struct device_array {
    T *data = nullptr;
    std::size_t count = 0;

    explicit device_array(std::size_t n) : count(n)
    {
        must(cudaMalloc(reinterpret_cast<void **>(&data), (n ? n : 1) * sizeof(T)));
    }
    device_array(device_array &&other) : data(other.data), count(other.count)
    {
        other.data = nullptr;
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    ~device_array() { if (data) must(cudaFree(data)); }

    void upload(const T *from)
    {
        must(cudaMemcpyAsync(data, from, count * sizeof(T), cudaMemcpyHostToDevice, stream));
        must(cudaStreamSynchronize(stream));
    }
    std::vector<T> download() const
    {
        std::vector<T> to(count);
        must(cudaMemcpyAsync(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
        must(cudaStreamSynchronize(stream));
        return to;
    }
};

/* ---- timing ---------------------------------------------------------------------------------- */

double wall_ms()
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* Each turn waits for the one before; the compiler cannot know the result and leave it out. */
__global__ void spin_kernel(int64_t turns, unsigned *sink)
{
    unsigned x = 1;
    for (int64_t k = 0; k < turns; k++) x = x * 1664525u + 1013904223u;
    if (threadIdx.x == 0) *sink = x;
}

__global__ void empty_kernel() {}

cudaEvent_t event_begin, event_end;
unsigned *d_sink;
double turns_per_ms = 1000;

void spin(double ms)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    must(cudaLaunchKernelEx(&config, spin_kernel, static_cast<int64_t>(ms * turns_per_ms), d_sink));
}

/* One run, queued behind `wait` ms of spinning. */
template <class Work>
double sample_ms(Work work, double wait)
{
    float ms = 0;
    spin(wait);
    must(cudaEventRecord(event_begin, stream));
    work();
    must(cudaEventRecord(event_end, stream));
    must(cudaEventSynchronize(event_end));
    must(cudaEventElapsedTime(&ms, event_begin, event_end));
    return static_cast<double>(ms);
}

/* Median of --runs runs, of twice as many below a millisecond, after two that warm up and tell how
   long queueing takes. */
template <class Work>
double gpu_ms(Work work)
{
    std::vector<double> samples;
    work();
    must(cudaStreamSynchronize(stream));
    double const begin = wall_ms();
    work();
    double const queueing = wall_ms() - begin;
    must(cudaStreamSynchronize(stream));
    double const wait = 0.05 + 2 * (queueing < 5 ? queueing : 5);
    int const runs = sample_ms(work, wait) < 1 ? 2 * bench.runs : bench.runs;
    for (int k = 0; k < runs; k++) samples.push_back(sample_ms(work, wait));
    return bench_median(samples.data(), runs);
}

/* Wakes the GPU up and finds out how long a turn of the spin kernel takes. */
void start_gpu()
{
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaEventCreate(&event_begin));
    must(cudaEventCreate(&event_end));
    must(cudaMalloc(reinterpret_cast<void **>(&d_sink), sizeof *d_sink));
    for (int k = 0; k < 3; k++) {
        /* 100 ms as known so far: 100,000 turns at first */
        double const ms = sample_ms([] { spin(100); }, 0);
        turns_per_ms *= 100 / (ms > 0.001 ? ms : 0.001);
    }
}

void stop_gpu()
{
    must(cudaFree(d_sink));
    must(cudaEventDestroy(event_begin));
    must(cudaEventDestroy(event_end));
    must(cudaStreamDestroy(stream));
}

/* header: its name and version. */
void print_gpu(const char *header, int version)
{
    cudaDeviceProp properties;
    int device, driver, runtime;
    must(cudaGetDevice(&device));
    must(cudaGetDeviceProperties(&properties, device));
    must(cudaDriverGetVersion(&driver));
    must(cudaRuntimeGetVersion(&runtime));
    std::printf("%s %d on %s ", header, version, properties.name);
    std::printf("(%d SM, sm_%d%d); ", properties.multiProcessorCount, properties.major,
                properties.minor);
    std::printf("driver for CUDA %d.%d, runtime %d.%d; ", driver / 1000, driver % 1000 / 10,
                runtime / 1000, runtime % 1000 / 10);
    bench_print_date();
    /* Linux; elsewhere nvidia-smi says it */
    if (FILE *file = std::fopen("/proc/driver/nvidia/version", "r")) {
        char line[256];
        if (std::fgets(line, sizeof line, file)) std::printf("%s", line);
        std::fclose(file);
    }
    std::printf("GPU time, median of %d runs (%d below 1 ms) after warm-up\n", bench.runs,
                2 * bench.runs);
}

/* ---- sums and hashes on the device ----------------------------------------------------------- */

/* A number without visible pattern from its index (MurmurHash3's finalizer). */
__device__ uint32_t hash(uint32_t k)
{
    k ^= k >> 16;
    k *= 0x85EBCA6Bu;
    k ^= k >> 13;
    k *= 0xC2B2AE35u;
    return k ^ k >> 16;
}

__device__ void add_to(unsigned long long *sum, unsigned long long x)
{
    for (int distance = 16; distance > 0; distance /= 2)
        x += __shfl_down_sync(0xFFFFFFFFu, x, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, x);
}

__global__ void sum_kernel(const int32_t *values, int64_t n, unsigned long long *sum)
{
    int64_t const k = thread_index();
    add_to(sum, k < n ? static_cast<unsigned long long>(values[k]) : 0);
}

/* What kernels add up, brought to the host. */
template <class Work>
int64_t device_sum(Work work)
{
    device_array<unsigned long long> sum(1);
    must(cudaMemsetAsync(sum.data, 0, sizeof *sum.data, stream));
    work(sum.data);
    return static_cast<int64_t>(sum.download()[0]);
}

[[maybe_unused]] int64_t sum_of(const device_array<int32_t> &values)
{
    int64_t const n = static_cast<int64_t>(values.count);
    return device_sum([&](unsigned long long *sum) { launch(n, sum_kernel, values.data, n, sum); });
}

/* ---- ceilings: what this GPU can do, measured in this run ------------------------------------ */

double copy_speed; /* bytes per ms, read and written bytes counted */

__global__ void copy_kernel(const float4 *from, float4 *to, int64_t count)
{
    int64_t const k = thread_index();
    if (k < count) to[k] = from[k];
}

void measure_copy()
{
    std::size_t const count = (static_cast<std::size_t>(bench.small   ? 1
                                                        : bench.quick ? 64
                                                                      : 512)
                               << 20) /
                              sizeof(float4);
    device_array<float4> from(count), to(count);
    must(cudaMemsetAsync(from.data, 0, count * sizeof(float4), stream));
    int64_t const n = static_cast<int64_t>(count);
    double const by_kernel = gpu_ms([&] { launch(n, copy_kernel, from.data, to.data, n); });
    double const by_engine = gpu_ms([&] {
        must(cudaMemcpyAsync(to.data, from.data, count * sizeof(float4), cudaMemcpyDeviceToDevice,
                             stream));
    });
    copy_speed = 2.0 * sizeof(float4) * static_cast<double>(count) /
                 (by_kernel < by_engine ? by_kernel : by_engine);
    std::printf("ceilings of this run: copy %.2f TB/s read and written (targets: 4.28)\n",
                copy_speed * 1e-9);
}

/* The figure of the targets at 1M or 10M; 0 elsewhere. */
[[maybe_unused]] double pick(int64_t n, double at_1m, double at_10m)
{
    return n == 1000000 ? at_1m : n == 10000000 ? at_10m : 0;
}

[[maybe_unused]] void ceiling_row(const std::string &workload, const char *method, int64_t n,
                                  double ms, double targets)
{
    bench_row_s row = {};
    row.group = "ceilings";
    row.workload = workload.c_str();
    row.method = method;
    row.n = n;
    row.ms = ms;
    row.peer_ms = targets;
    row.peer = targets > 0 ? "the H200 of targets" : "";
    bench_row(&row);
}

template <class Key>
__global__ void hash_kernel(Key *keys, int32_t *values, int64_t n)
{
    int64_t const k = thread_index();
    if (k >= n) return;
    uint32_t const low = hash(static_cast<uint32_t>(k));
    keys[k] = static_cast<Key>(static_cast<uint64_t>(low) << 32 | hash(low + 1)) >>
              (sizeof(Key) == 8 ? 1 : 2);
    values[k] = static_cast<int32_t>(k);
}

/* A stable sort of (key, value) pairs by CUB; the keys are 30 or 63 random bits. */
template <class Key>
struct sorter {
    device_array<Key> keys, sorted_keys;
    device_array<int32_t> values, sorted_values;
    std::size_t temp_bytes;
    device_array<char> temp;

    explicit sorter(int64_t n)
        : keys(std::size_t(n)), sorted_keys(std::size_t(n)), values(std::size_t(n)),
          sorted_values(std::size_t(n)), temp_bytes(bytes_for(n)), temp(temp_bytes)
    {
        launch(n, hash_kernel<Key>, keys.data, values.data, n);
    }
    static std::size_t bytes_for(int64_t n)
    {
        std::size_t bytes = 0;
        Key *const no_keys = nullptr;
        int32_t *const no_values = nullptr;
        int const count = static_cast<int>(n);
        must(cub::DeviceRadixSort::SortPairs(nullptr, bytes, no_keys, no_keys, no_values, no_values,
                                             count, 0, bits(), stream));
        return bytes;
    }
    static int bits() { return sizeof(Key) == 8 ? 63 : 30; }
    void sort(int sorted_bits = sorter::bits())
    {
        must(cub::DeviceRadixSort::SortPairs(temp.data, temp_bytes, keys.data, sorted_keys.data,
                                             values.data, sorted_values.data,
                                             static_cast<int>(keys.count), 0, sorted_bits, stream));
    }
};

__global__ void gather_kernel(const float4 *from, const int32_t *order, float4 *to, int64_t n)
{
    int64_t const k = thread_index();
    if (k < n) to[k] = from[order[k]];
}

[[maybe_unused]] double gather_ms(const int32_t *d_order, int64_t n)
{
    device_array<float4> from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n));
    must(cudaMemsetAsync(from.data, 0, from.count * sizeof(float4), stream));
    return gpu_ms([&] { launch(n, gather_kernel, from.data, d_order, to.data, n); });
}

std::string size_name(int64_t n)
{
    if (n % 1000000 == 0) return std::to_string(n / 1000000) + "M";
    return n % 1000 == 0 ? std::to_string(n / 1000) + "k" : std::to_string(n);
}

} // namespace

#endif /* BENCH_GPU_H */
