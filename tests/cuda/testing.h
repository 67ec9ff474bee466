/* testing.h - what the tests of this folder share: checks, device memory, launches, a heap that
   counts, main. One file each includes it.
   SPDX-License-Identifier: MIT OR Unlicense

       #include "ugrid.h"                      first what is tested, with UGRID_CUDA,
       #define TESTED ugrid                    and its prefix: its numbers are `real`,
                                               CHECK_RESULT compares its results
       #include "testing.h"

       static const Test tests[] = {{"few", test_few}, {"totals", test_totals}};

       int main(int argc, char **argv)
       {
           read_options(argc, argv, {{"--n", &n_max, 8}});
           return run_tests(tests);
       } */

#ifndef CUDA_TESTING_H
#define CUDA_TESTING_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "../common/workloads.h"

#ifdef CUDA_EMU
#include "emu.h"
#endif

#define TESTING_PASTE(a, b) a##b
#define TESTING_NAME(prefix, name) TESTING_PASTE(prefix, name)
#define OF_TESTED(name) TESTING_NAME(TESTED, name)      /* OF_TESTED(_real) is ugrid_real */

typedef OF_TESTED(_real) real;

inline const real infinity = (real)INFINITY, not_a_number = (real)NAN;

/* ---- checks ---- */

inline int failures, checks;
inline std::string context;     /* which case is being tested */

inline void failed(const char *file, int line, const char *what)
{
    if (++failures <= 20)
        printf("%s:%d: check failed: %s\n  %s\n", file, line, what, context.c_str());
}

#define CHECK(condition) do { \
        checks++; \
        if (!(condition)) failed(__FILE__, __LINE__, #condition); \
    } while (0)

#define CHECK_RESULT(call, expected) do { \
        OF_TESTED(_result) const got_ = (call), want_ = (expected); \
        checks++; \
        if (got_ != want_) { \
            printf("got %s\n", OF_TESTED(_result_text)(got_)); \
            failed(__FILE__, __LINE__, #call " is " #expected); \
        } \
    } while (0)

inline void must(cudaError_t error, const char *file, int line, const char *what)
{
    if (error == cudaSuccess) return;
    printf("%s:%d: %s: %s\n  %s\n", file, line, what, cudaGetErrorString(error), context.c_str());
    exit(3);
}

/* A CUDA call of the test itself that has no reason to fail. */
#define MUST(call) must(call, __FILE__, __LINE__, #call)

template <class T> bool same_bits(const T *a, const T *b, size_t count)
{
    return count == 0 || (a && b && memcmp(a, b, count * sizeof(T)) == 0);
}

template <class T> bool same_bits(const std::vector<T> &a, const std::vector<T> &b)
{
    return a.size() == b.size() && same_bits(a.data(), b.data(), a.size());
}

/* Neither is there, or both are, with the same bits. */
template <class T> bool same_array(const T *a, const T *b, size_t count)
{
    return !a == !b && (!a || same_bits(a, b, count));
}

/* How many blocks of an object have memory; and how many have memory of exactly so many bytes. */
template <class Block, size_t count> int blocks_in_use(const Block (&block)[count])
{
    return (int)std::count_if(block, block + count, [](const Block &b) { return b.memory; });
}

template <class Block, size_t count> int blocks_of(size_t bytes, const Block (&block)[count])
{
    return (int)std::count_if(block, block + count,
        [bytes](const Block &b) { return b.memory && b.bytes == bytes; });
}

/* ---- cases ---- */

inline int n_max, share;        /* most elements of a case; every how manyth case is run */

/* A number that follows from k alone, without a pattern that could fall together with one of the
   cases. */
__host__ __device__ inline uint32_t scattered(uint64_t k)
{
    return (uint32_t)((k + 1) * 0x9E3779B97F4A7C15u >> 33);
}

/* One of `every` cases; and one of `most` however large --share is. */
inline bool chosen(size_t k, int every, int most)
{
    return scattered(k) % (uint32_t)std::max(std::min(every, most), 1) == 0;
}

/* Sizes of a test of growth: 1, 2, ... 64, 72, 80, ... most. */
inline int next_size(int n, int most)
{
    return n < 64 || n >= most ? n + 1 : std::min(n + 8, most);
}

/* ---- the device ---- */

inline cudaStream_t stream;     /* of all tests but those with two */

/* Device memory of exactly this size, with its contents copied in, and out on demand. */
template <class T> struct Device {
    T *p = nullptr;
    size_t count;
    explicit Device(size_t n, int byte = 0xA5) : count(n)
    {
        MUST(cudaMalloc((void **)&p, n ? n * sizeof(T) : 1));
        forget(byte);
    }
    explicit Device(const std::vector<T> &host) : Device(host.size()) { set(host); }
    ~Device() { MUST(cudaFree(p)); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    void forget(int byte = 0xA5) const
    {
        if (count) MUST(cudaMemset(p, byte, count * sizeof(T)));
        MUST(cudaDeviceSynchronize()); /* streams of the tests do not wait for the default stream */
    }
    void set(const std::vector<T> &host) const
    {
        if (!host.empty())
            MUST(cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
        MUST(cudaDeviceSynchronize());
    }
    std::vector<T> get(cudaStream_t after = stream) const
    {
        std::vector<T> host(count);
        MUST(cudaStreamSynchronize(after));
        if (count) MUST(cudaMemcpy(host.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost));
        return host;
    }
};

/* The launches of a test, typed and checked, as those of cuda/. */
template <class... Parameters, class... Arguments>
void launch(int64_t threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    if (threads == 0) return;
    config.gridDim = dim3((unsigned)((threads + 127) / 128));
    config.blockDim = dim3(128);
    config.stream = stream;
    MUST(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

/* Device memory with a count, and a failure on request: of allocation fail_at, with `forever` of
   all from there on. */
struct Heap {
    long calls, live, fail_at, failed;
    size_t live_bytes;
    bool forever, wrong_stream;
};

inline void *heap_alloc(size_t bytes, struct CUstream_st *s, void *user)
{
    Heap *h = (Heap *)user;
    void *memory = nullptr;
    if (s != stream) h->wrong_stream = true;
    h->calls++;
    if (h->fail_at && (h->forever ? h->calls >= h->fail_at : h->calls == h->fail_at)) {
        h->failed++;
        return nullptr;
    }
    MUST(cudaMalloc(&memory, bytes));
    MUST(cudaMemset(memory, 0xA5, bytes));
    MUST(cudaDeviceSynchronize());
    h->live++;
    h->live_bytes += bytes;
    return memory;
}

inline void heap_free(void *memory, size_t bytes, struct CUstream_st *s, void *user)
{
    Heap *h = (Heap *)user;
    if (s != stream) h->wrong_stream = true;
    MUST(cudaStreamSynchronize(s)); /* what was queued may still use it */
    MUST(cudaFree(memory));
    h->live--;
    h->live_bytes -= bytes;
}

inline OF_TESTED(_cuda_allocator) allocator_of(Heap *h) { return {heap_alloc, heap_free, h}; }

/* ---- main ---- */

struct Test {
    const char *name;
    void (*run)();
};

struct Option {
    const char *name;
    int *value, least;
};

inline const char *only = "";   /* tests whose names hold this */

/* Words in twos: --only NAME, or an option and its number. */
inline void read_options(int argc, char **argv, std::initializer_list<Option> options)
{
    for (int k = 1; k + 1 < argc; k += 2) {
        if (!strcmp(argv[k], "--only")) only = argv[k + 1];
        for (const Option &o : options)
            if (!strcmp(argv[k], o.name)) *o.value = std::max(atoi(argv[k + 1]), o.least);
    }
}

/* TEST_SKIP=NAME,NAME in the environment leaves tests out. */
inline bool is_skipped(const char *name)
{
    const char *names = getenv("TEST_SKIP");
    if (!names) return false;
    std::string const list = "," + std::string(names) + ",";
    return list.find("," + std::string(name) + ",") != std::string::npos;
}

/* Milliseconds of the clock on the wall. */
inline double now_ms()
{
    return std::chrono::duration<double,
        std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* All tests, without those of `slow` unless --only asks for them. What main returns: 0, 1 where
   one failed, 77 without a GPU, 78 where --only names none of them. */
template <size_t count> int run_tests(const Test (&tests)[count],
    std::initializer_list<std::string> slow = {})
{
    int devices = 0, passed = 0, bad = 0, taken = 0;
    double const begun = now_ms();
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU here\n");
        return 77;
    }
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const Test &test : tests) {
        if (!strstr(test.name, only) ||
            (!only[0] && std::count(slow.begin(), slow.end(), test.name)))
            continue;
        taken++;
        if (is_skipped(test.name)) {
            printf("skipped  %s\n", test.name);
            continue;
        }
        int const before = failures;
        double const start = now_ms();
        context = test.name;
        test.run();
        MUST(cudaDeviceSynchronize());
        (failures == before ? passed : bad)++;
        printf("%s %s, %.0f ms\n", failures == before ? "ok    " : "FAILED", test.name,
            now_ms() - start);
        fflush(stdout);
    }
    MUST(cudaStreamDestroy(stream));
    if (!taken) {
        printf("no test was run: none of these has '%s' in its name\n", only);
        return 78;
    }
    if (share) printf("--share %d, --n %d\n", share, n_max);
    printf("%.0f ms\n", now_ms() - begun);
    printf("%d checks\n[  PASSED  ] %d test(s).\n", checks, passed);
    if (bad) printf("[  FAILED  ] %d test(s), %d checks\n", bad, failures);
    return bad ? 1 : 0;
}

#endif /* CUDA_TESTING_H */
