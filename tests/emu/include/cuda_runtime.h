/* cuda_runtime.h - the emulator's stand-in for NVIDIA's header of that name.
   SPDX-License-Identifier: MIT

   With tests/emu/include in front of the include path, an ordinary .cu file becomes ordinary
   C++17: the qualifiers turn into nothing (or a linker section), the intrinsics into functions, a
   kernel launch into a call of emu::launch. What needs to know about other threads, about time or
   about memory is in ../emu.cc; here is only what the compiler has to see.

   Sections: >>qualifiers >>vectors >>emu >>barriers >>warps >>atomics >>math >>errors >>api
   >>launch */
#ifndef EMU_CUDA_RUNTIME_H
#define EMU_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#ifndef CUDA_EMU
#define CUDA_EMU 1
#endif

/* ---- >>qualifiers ------------------------------------------------------------------------------

   Kernels and shared variables get linker sections of their own. By them the emulator knows every
   kernel of the program (also those that no test launched), and can fill all shared memory with
   rubbish before a block starts. The dot in ".emu_shared" matters: clang's AddressSanitizer puts
   no red zones around variables in sections whose name is a C identifier. */

#define __host__
#define __device__
#define __global__ __attribute__((section(".emu_kernels"), noinline, used))
#define __shared__ static __attribute__((section(".emu_shared")))
#define __constant__
#define __managed__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define CUDART_VERSION 13000
#define CUDART_CB

/* ---- >>vectors: int2, float4 and so on, with the sizes and alignments of CUDA ---------------- */

#define EMU_VECTOR(T, name, align2, align4)                                                        \
    struct name##1 { T x; };                                                                       \
    struct alignas(align2) name##2 { T x, y; };                                                    \
    struct name##3 { T x, y, z; };                                                                 \
    struct alignas(align4) name##4 { T x, y, z, w; };                                              \
    inline name##1 make_##name##1(T x) { return {x}; }                                             \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                     \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                             \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMU_VECTOR(signed char, char, 2, 4)
EMU_VECTOR(unsigned char, uchar, 2, 4)
EMU_VECTOR(short, short, 4, 8)
EMU_VECTOR(unsigned short, ushort, 4, 8)
EMU_VECTOR(int, int, 8, 16)
EMU_VECTOR(unsigned int, uint, 8, 16)
EMU_VECTOR(long, long, 16, 16)
EMU_VECTOR(unsigned long, ulong, 16, 16)
EMU_VECTOR(long long, longlong, 16, 16)
EMU_VECTOR(unsigned long long, ulonglong, 16, 16)
EMU_VECTOR(float, float, 8, 16)
EMU_VECTOR(double, double, 16, 16)

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

/* Plain globals: one operating system thread runs everything, and emu.cc sets these each time it
   turns to another CUDA thread. (It also makes `break kernel if threadIdx.x == 5` work in gdb.) */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

/* ---- >>emu: what the functions below ask of emu.cc ------------------------------------------- */

#if defined(__SANITIZE_THREAD__)
#define EMU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EMU_TSAN 1
#endif
#endif

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;

namespace emu {

/* A place in the source. As a default argument it is the place of the call. */
struct Site {
    const char *file;
    int line;
};
#define EMU_SITE emu::Site site = {__builtin_FILE(), __builtin_LINE()}

enum class Op {
    barrier, barrier_count, barrier_and, barrier_or,
    sync, activemask, shuffle, shuffle_up, shuffle_down, shuffle_xor,
    ballot, any, all, match_any, match_all, add, min, max, bit_and, bit_or, bit_xor
};

uint64_t barrier(Op op, int predicate, Site site);
uint64_t warp(Op op, unsigned int mask, uint64_t value, int argument, int width, Site site);
void fence();
void pause();
void *dynamic_shared_memory();
[[noreturn]] void trap(const char *what, Site site);

/* Atomics are where a thread may be interrupted, and by which a spinning thread lets others run:
   each one takes from a budget, and when that is gone emu.cc decides. */
extern int atomic_budget;
void atomic_event(const void *address);
inline void atomic_point(const void *address)
{
#ifdef EMU_TSAN
    atomic_event(address); /* the budget is common to all threads: TSan would see races for it */
#else
    if (--atomic_budget < 0) atomic_event(address);
#endif
}

} // namespace emu

/* The body of a product's dynamic_shared<T>() under CUDA_EMU, where nvcc has `extern
   __shared__`. */
inline void *emu_dynamic_shared() { return emu::dynamic_shared_memory(); }

/* ---- >>barriers ------------------------------------------------------------------------------ */

inline void __syncthreads(EMU_SITE) { emu::barrier(emu::Op::barrier, 0, site); }
inline int __syncthreads_count(int p, EMU_SITE)
{
    return (int)emu::barrier(emu::Op::barrier_count, p, site);
}
inline int __syncthreads_and(int p, EMU_SITE)
{
    return (int)emu::barrier(emu::Op::barrier_and, p, site);
}
inline int __syncthreads_or(int p, EMU_SITE)
{
    return (int)emu::barrier(emu::Op::barrier_or, p, site);
}

inline void __threadfence() { emu::fence(); }
inline void __threadfence_block() { emu::fence(); }
inline void __threadfence_system() { emu::fence(); }
inline void __nanosleep(unsigned int) { emu::pause(); }
[[noreturn]] inline void __trap(EMU_SITE) { emu::trap("__trap()", site); }

/* ---- >>warps: values cross as 64 bits -------------------------------------------------------- */

namespace emu {
template <class T> uint64_t to_bits(T value)
{
    static_assert(std::is_arithmetic<T>::value && sizeof(T) >= 4,
                  "CUDA has this for 4- and 8-byte numbers");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> T from_bits(uint64_t bits)
{
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> T shuffle(Op op, unsigned int mask, T value, int argument, int width, Site site)
{
    return from_bits<T>(warp(op, mask, to_bits(value), argument, width, site));
}
/* Sign-extended for int, zero-extended for unsigned: 64-bit arithmetic then serves both. */
template <class T> T reduce(Op op, unsigned int mask, T value, Site site)
{
    return (T)warp(op, mask, (uint64_t)(int64_t)value, 0, 32, site);
}
} // namespace emu

inline void __syncwarp(unsigned int mask = 0xffffffffu, EMU_SITE)
{
    emu::warp(emu::Op::sync, mask, 0, 0, 32, site);
}
inline unsigned int __activemask(EMU_SITE)
{
    return (unsigned int)emu::warp(emu::Op::activemask, 0, 0, 0, 32, site);
}

template <class T> T __shfl_sync(unsigned int mask, T value, int lane, int width = 32, EMU_SITE)
{
    return emu::shuffle(emu::Op::shuffle, mask, value, lane, width, site);
}
template <class T>
T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32, EMU_SITE)
{
    return emu::shuffle(emu::Op::shuffle_up, mask, value, (int)delta, width, site);
}
template <class T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32, EMU_SITE)
{
    return emu::shuffle(emu::Op::shuffle_down, mask, value, (int)delta, width, site);
}
template <class T>
T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32, EMU_SITE)
{
    return emu::shuffle(emu::Op::shuffle_xor, mask, value, lanes, width, site);
}

inline unsigned int __ballot_sync(unsigned int mask, int p, EMU_SITE)
{
    return (unsigned int)emu::warp(emu::Op::ballot, mask, p != 0, 0, 32, site);
}
inline int __any_sync(unsigned int mask, int p, EMU_SITE)
{
    return (int)emu::warp(emu::Op::any, mask, p != 0, 0, 32, site);
}
inline int __all_sync(unsigned int mask, int p, EMU_SITE)
{
    return (int)emu::warp(emu::Op::all, mask, p != 0, 0, 32, site);
}
template <class T> unsigned int __match_any_sync(unsigned int mask, T value, EMU_SITE)
{
    return (unsigned int)emu::warp(emu::Op::match_any, mask, emu::to_bits(value), 0, 32, site);
}
template <class T> unsigned int __match_all_sync(unsigned int mask, T value, int *all, EMU_SITE)
{
    unsigned int same =
        (unsigned int)emu::warp(emu::Op::match_all, mask, emu::to_bits(value), 0, 32, site);
    *all = same != 0;
    return same;
}

inline unsigned int __reduce_add_sync(unsigned int m, unsigned int v, EMU_SITE)
{
    return emu::reduce(emu::Op::add, m, v, site);
}
inline unsigned int __reduce_min_sync(unsigned int m, unsigned int v, EMU_SITE)
{
    return emu::reduce(emu::Op::min, m, v, site);
}
inline unsigned int __reduce_max_sync(unsigned int m, unsigned int v, EMU_SITE)
{
    return emu::reduce(emu::Op::max, m, v, site);
}
inline int __reduce_add_sync(unsigned int m, int v, EMU_SITE)
{
    return emu::reduce(emu::Op::add, m, v, site);
}
inline int __reduce_min_sync(unsigned int m, int v, EMU_SITE)
{
    return emu::reduce(emu::Op::min, m, v, site);
}
inline int __reduce_max_sync(unsigned int m, int v, EMU_SITE)
{
    return emu::reduce(emu::Op::max, m, v, site);
}
inline unsigned int __reduce_and_sync(unsigned int m, unsigned int v, EMU_SITE)
{
    return emu::reduce(emu::Op::bit_and, m, v, site);
}
inline unsigned int __reduce_or_sync(unsigned int m, unsigned int v, EMU_SITE)
{
    return emu::reduce(emu::Op::bit_or, m, v, site);
}
inline unsigned int __reduce_xor_sync(unsigned int m, unsigned int v, EMU_SITE)
{
    return emu::reduce(emu::Op::bit_xor, m, v, site);
}

/* ---- >>atomics ---------------------------------------------------------------------------------

   Under ThreadSanitizer they must be real (relaxed) atomics, or it would call them races. Anywhere
   else a plain read and write serves better: MemorySanitizer then sees what was never set. */

namespace emu {

template <class T, class Next> T atomic_update(T *p, Next next)
{
    atomic_point(p);
#ifdef EMU_TSAN
    T old, changed;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do changed = next(old);
    while (
        !__atomic_compare_exchange(p, &old, &changed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
#else
    T old = *p;
    *p = next(old);
#endif
    return old;
}

/* Integers wrap on the GPU; in C++ only unsigned ones do. */
template <class T> T wrapping_add(T a, T b)
{
    if constexpr (std::is_integral<T>::value) {
        using U = typename std::make_unsigned<T>::type;
        return (T)((U)a + (U)b);
    } else {
        return a + b;
    }
}
template <class T> T atomic_add(T *p, T v)
{
    return atomic_update(p, [=](T old) { return wrapping_add(old, v); });
}
template <class T> T atomic_min(T *p, T v)
{
    return atomic_update(p, [=](T old) { return v < old ? v : old; });
}
template <class T> T atomic_max(T *p, T v)
{
    return atomic_update(p, [=](T old) { return v > old ? v : old; });
}
template <class T> T atomic_and(T *p, T v)
{
    return atomic_update(p, [=](T old) { return old & v; });
}
template <class T> T atomic_or(T *p, T v)
{
    return atomic_update(p, [=](T old) { return old | v; });
}
template <class T> T atomic_xor(T *p, T v)
{
    return atomic_update(p, [=](T old) { return old ^ v; });
}
template <class T> T atomic_exch(T *p, T v) { return atomic_update(p, [=](T) { return v; }); }
template <class T> T atomic_cas(T *p, T expected, T v)
{
    return atomic_update(p, [=](T old) { return old == expected ? v : old; });
}

} // namespace emu

/* The overloads are CUDA's, no more: what does not compile there shall not compile here. */
inline int atomicAdd(int *p, int v) { return emu::atomic_add(p, v); }
inline unsigned int atomicAdd(unsigned int *p, unsigned int v) { return emu::atomic_add(p, v); }
inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_add(p, v);
}
inline float atomicAdd(float *p, float v) { return emu::atomic_add(p, v); }
inline double atomicAdd(double *p, double v) { return emu::atomic_add(p, v); }

inline int atomicSub(int *p, int v) { return emu::atomic_add(p, (int)(0u - (unsigned int)v)); }
inline unsigned int atomicSub(unsigned int *p, unsigned int v)
{
    return emu::atomic_add(p, 0u - v);
}

inline int atomicExch(int *p, int v) { return emu::atomic_exch(p, v); }
inline unsigned int atomicExch(unsigned int *p, unsigned int v) { return emu::atomic_exch(p, v); }
inline unsigned long long atomicExch(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_exch(p, v);
}
inline float atomicExch(float *p, float v) { return emu::atomic_exch(p, v); }

inline int atomicCAS(int *p, int expected, int v) { return emu::atomic_cas(p, expected, v); }
inline unsigned int atomicCAS(unsigned int *p, unsigned int expected, unsigned int v)
{
    return emu::atomic_cas(p, expected, v);
}
inline unsigned long long atomicCAS(unsigned long long *p, unsigned long long expected,
                                    unsigned long long v)
{
    return emu::atomic_cas(p, expected, v);
}

inline int atomicMin(int *p, int v) { return emu::atomic_min(p, v); }
inline unsigned int atomicMin(unsigned int *p, unsigned int v) { return emu::atomic_min(p, v); }
inline long long atomicMin(long long *p, long long v) { return emu::atomic_min(p, v); }
inline unsigned long long atomicMin(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_min(p, v);
}
inline int atomicMax(int *p, int v) { return emu::atomic_max(p, v); }
inline unsigned int atomicMax(unsigned int *p, unsigned int v) { return emu::atomic_max(p, v); }
inline long long atomicMax(long long *p, long long v) { return emu::atomic_max(p, v); }
inline unsigned long long atomicMax(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_max(p, v);
}

inline int atomicAnd(int *p, int v) { return emu::atomic_and(p, v); }
inline unsigned int atomicAnd(unsigned int *p, unsigned int v) { return emu::atomic_and(p, v); }
inline unsigned long long atomicAnd(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_and(p, v);
}
inline int atomicOr(int *p, int v) { return emu::atomic_or(p, v); }
inline unsigned int atomicOr(unsigned int *p, unsigned int v) { return emu::atomic_or(p, v); }
inline unsigned long long atomicOr(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_or(p, v);
}
inline int atomicXor(int *p, int v) { return emu::atomic_xor(p, v); }
inline unsigned int atomicXor(unsigned int *p, unsigned int v) { return emu::atomic_xor(p, v); }
inline unsigned long long atomicXor(unsigned long long *p, unsigned long long v)
{
    return emu::atomic_xor(p, v);
}

inline unsigned int atomicInc(unsigned int *p, unsigned int top)
{
    return emu::atomic_update(p, [=](unsigned int old) { return old >= top ? 0u : old + 1u; });
}
inline unsigned int atomicDec(unsigned int *p, unsigned int top)
{
    return emu::atomic_update(
        p, [=](unsigned int old) { return old == 0u || old > top ? top : old - 1u; });
}

/* ---- >>math ---------------------------------------------------------------------------------- */

inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned int)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x)
{
    unsigned long long reversed = 0;
    for (int bit = 0; bit < 64; ++bit) reversed |= ((x >> bit) & 1) << (63 - bit);
    return reversed;
}
inline unsigned int __brev(unsigned int x) { return (unsigned int)(__brevll(x) >> 32); }
inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b)
{
    return (unsigned int)(((unsigned long long)a * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    __extension__ typedef unsigned __int128 wide;
    return (unsigned long long)(((wide)a * b) >> 64);
}

inline int __float_as_int(float x) { return emu::from_bits<int>(emu::to_bits(x)); }
inline unsigned int __float_as_uint(float x)
{
    return emu::from_bits<unsigned int>(emu::to_bits(x));
}
inline float __int_as_float(int x) { return emu::from_bits<float>(emu::to_bits(x)); }
inline float __uint_as_float(unsigned int x) { return emu::from_bits<float>(emu::to_bits(x)); }
inline long long __double_as_longlong(double x)
{
    return emu::from_bits<long long>(emu::to_bits(x));
}
inline double __longlong_as_double(long long x) { return emu::from_bits<double>(emu::to_bits(x)); }

/* Compile with -ffp-contract=off, and these are single roundings here too. */
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rd(float a, float b)
{
    float sum = a + b;
    double part = (double)sum - a; /* two sums: what rounding left out */
    double rest = ((double)a - ((double)sum - part)) + ((double)b - part);
    return rest < 0 ? nextafterf(sum, -HUGE_VALF) : sum;
}
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

namespace emu {
/* The GPU saturates, and turns NaN into 0; in C++ both are undefined. */
template <class I, class F> I saturate(F x)
{
    const F high = ldexp((F)1, (int)sizeof(I) * 8 - (std::is_signed<I>::value ? 1 : 0));
    if (!(x == x)) return 0;
    if (x >= high)
        return std::is_signed<I>::value ? (I)(~(typename std::make_unsigned<I>::type)0 >> 1)
                                        : (I) ~(I)0;
    if (std::is_signed<I>::value ? x < -high : x <= -1)
        return std::is_signed<I>::value ? (I)(-high) : 0;
    return (I)x;
}
} // namespace emu
inline int __float2int_rz(float x) { return emu::saturate<int>(x); }
inline int __float2int_rd(float x) { return emu::saturate<int>(floorf(x)); }
inline int __float2int_ru(float x) { return emu::saturate<int>(ceilf(x)); }
inline int __float2int_rn(float x) { return emu::saturate<int>(rintf(x)); }
inline unsigned int __float2uint_rz(float x) { return emu::saturate<unsigned int>(x); }
inline unsigned int __float2uint_rd(float x) { return emu::saturate<unsigned int>(floorf(x)); }
inline unsigned int __float2uint_rn(float x) { return emu::saturate<unsigned int>(rintf(x)); }
inline int __double2int_rz(double x) { return emu::saturate<int>(x); }
inline int __double2int_rd(double x) { return emu::saturate<int>(floor(x)); }
inline long long __double2ll_rz(double x) { return emu::saturate<long long>(x); }
inline long long __double2ll_rd(double x) { return emu::saturate<long long>(floor(x)); }
inline float __double2float_rn(double x) { return (float)x; }
inline float __double2float_ru(double x)
{
    float y = (float)x;
    return (double)y < x ? nextafterf(y, HUGE_VALF) : y;
}
inline float __double2float_rd(double x)
{
    float y = (float)x;
    return (double)y > x ? nextafterf(y, -HUGE_VALF) : y;
}
inline float __int2float_rn(int x) { return (float)x; }

/* Byte i of the result is that of eight (x, then y, lowest first) which nibble i of `pick` names;
   bit 3 of a nibble, its sign in all bits, is not in use here. */
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int pick)
{
    unsigned long long const eight = (unsigned long long)y << 32 | x;
    unsigned int result = 0;
    for (int i = 0; i < 4; ++i)
        result |= (unsigned int)(eight >> (pick >> 4 * i & 7) * 8 & 255) << 8 * i;
    return result;
}
inline unsigned int __vminu2(unsigned int x, unsigned int y)
{
    unsigned int const low = (x & 0xFFFF) < (y & 0xFFFF) ? x : y, high = x >> 16 < y >> 16 ? x : y;
    return (high & 0xFFFF0000u) | (low & 0xFFFF);
}
inline int __vimax3_s32_relu(int x, int y, int z)
{
    int const two = x > y ? x : y, three = two > z ? two : z;
    return three > 0 ? three : 0;
}
inline int __vimin3_s32(int x, int y, int z)
{
    int const two = x < y ? x : y;
    return two < z ? two : z;
}
inline float __uint2float_rn(unsigned int x) { return (float)x; }

template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldca(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldlu(const T *p) { return *p; }
/* A word that other threads change by atomics meanwhile. */
template <class T> T __ldcv(const T *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
template <class T> void __stcg(T *p, T v) { *p = v; }
template <class T> void __stcs(T *p, T v) { *p = v; }
template <class T> void __stwb(T *p, T v) { *p = v; }
template <class T> void __stwt(T *p, T v) { *p = v; }

inline int min(int a, int b) { return b < a ? b : a; }
inline unsigned int min(unsigned int a, unsigned int b) { return b < a ? b : a; }
inline unsigned int min(int a, unsigned int b) { return min((unsigned int)a, b); }
inline unsigned int min(unsigned int a, int b) { return min(a, (unsigned int)b); }
inline long min(long a, long b) { return b < a ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned int max(unsigned int a, unsigned int b) { return a < b ? b : a; }
inline unsigned int max(int a, unsigned int b) { return max((unsigned int)a, b); }
inline unsigned int max(unsigned int a, int b) { return max(a, (unsigned int)b); }
inline long max(long a, long b) { return a < b ? b : a; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

/* ---- >>errors: the type is nodiscard, so an unchecked CUDA call is a compiler warning -------- */

#define EMU_ERRORS(X)                                                                              \
    X(cudaSuccess, 0, "no error")                                                                  \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                               \
    X(cudaErrorInitializationError, 3, "initialization error")                                     \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                          \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                 \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                    \
    X(cudaErrorInsufficientDriver, 35,                                                             \
      "CUDA driver version is insufficient for CUDA runtime version")                              \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                               \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                       \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                              \
    X(cudaErrorNotReady, 600, "device not ready")                                                  \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                    \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")               \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                   \
    X(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")            \
    X(cudaErrorNotSupported, 801, "operation not supported")                                       \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")  \
    X(cudaErrorStreamCaptureInvalidated, 901,                                                      \
      "operation failed due to a previous error during capture")                                   \
    X(cudaErrorStreamCaptureMerge, 902,                                                            \
      "operation would result in a merge of separate capture sequences")                           \
    X(cudaErrorStreamCaptureUnmatched, 903,                                                        \
      "capture was not ended in the same stream as it began")                                      \
    X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                   \
    X(cudaErrorStreamCaptureIsolation, 905,                                                        \
      "dependency created on uncaptured work in another stream")                                   \
    X(cudaErrorStreamCaptureImplicit, 906,                                                         \
      "operation would make the legacy stream depend on a capturing blocking stream")              \
    X(cudaErrorCapturedEvent, 907,                                                                 \
      "operation not permitted on an event last recorded in a capturing stream")                   \
    X(cudaErrorUnknown, 999, "unknown error")

#define EMU_ENUM(name, number, text) name = number,
enum [[nodiscard]] cudaError { EMU_ERRORS(EMU_ENUM) };
#undef EMU_ENUM
typedef cudaError cudaError_t;

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

/* ---- >>api: devices -------------------------------------------------------------------------- */

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor,
        totalConstMem;
    int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsDim[3],
        maxGridSize[3];
    int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor;
    int memoryBusWidth, l2CacheSize, concurrentKernels, asyncEngineCount, unifiedAddressing,
        managedMemory;
    int memoryPoolsSupported, cooperativeLaunch, ECCEnabled, integrated, canMapHostMemory, pciBusID,
        pciDeviceID;
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrManagedMemory = 83,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxBlocksPerMultiprocessor = 106,
    cudaDevAttrMemoryPoolsSupported = 115
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

/* ---- >>api: memory --------------------------------------------------------------------------- */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
};
enum : unsigned int {
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4
};
enum : unsigned int { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2 };

cudaError_t cudaMalloc(void **p, size_t size);
cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream);
cudaError_t cudaMallocManaged(void **p, size_t size, unsigned int flags = cudaMemAttachGlobal);
cudaError_t cudaMallocHost(void **p, size_t size, unsigned int flags = 0);
cudaError_t cudaHostAlloc(void **p, size_t size, unsigned int flags);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *p, int value, size_t size);
cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream = nullptr);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p);

template <class T> cudaError_t cudaMalloc(T **p, size_t size)
{
    return cudaMalloc((void **)(void *)p, size);
}
template <class T> cudaError_t cudaMallocAsync(T **p, size_t size, cudaStream_t stream)
{
    return cudaMallocAsync((void **)(void *)p, size, stream);
}
template <class T>
cudaError_t cudaMallocManaged(T **p, size_t size, unsigned int flags = cudaMemAttachGlobal)
{
    return cudaMallocManaged((void **)(void *)p, size, flags);
}
template <class T> cudaError_t cudaMallocHost(T **p, size_t size, unsigned int flags = 0)
{
    return cudaMallocHost((void **)(void *)p, size, flags);
}

/* The pool of cudaMallocAsync: its settings are accepted and mean nothing. */
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);

/* ---- >>api: textures: linear memory, read by element; the object is the address -------------- */

typedef unsigned long long cudaTextureObject_t;
enum cudaResourceType { cudaResourceTypeLinear = 2 };
enum cudaTextureReadMode { cudaReadModeElementType = 0 };
struct cudaChannelFormatDesc { int bytes; };
struct cudaResourceDesc {
    cudaResourceType resType;
    struct {
        struct { void *devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
    } res;
};
struct cudaTextureDesc { cudaTextureReadMode readMode; };
struct cudaResourceViewDesc;

template <class T> cudaChannelFormatDesc cudaCreateChannelDesc()
{
    return {static_cast<int>(sizeof(T))};
}
[[nodiscard]] inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object,
                                                         const cudaResourceDesc *resource,
                                                         const cudaTextureDesc *,
                                                         const cudaResourceViewDesc *)
{
    *object = reinterpret_cast<cudaTextureObject_t>(resource->res.linear.devPtr);
    return *object && resource->res.linear.sizeInBytes ? cudaSuccess : cudaErrorInvalidValue;
}
[[nodiscard]] inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t)
{
    return cudaSuccess;
}
template <class T> T tex1Dfetch(cudaTextureObject_t object, int k)
{
    return reinterpret_cast<const T *>(object)[k];
}

/* ---- >>api: streams, events, graphs ---------------------------------------------------------- */

enum : unsigned int { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum : unsigned int { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
typedef void (*cudaHostFn_t)(void *user);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                     unsigned long long *id = nullptr,
                                     cudaGraph_t *graph = nullptr);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* ---- >>launch -------------------------------------------------------------------------------- */

enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore,
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union { char pad[64]; int programmaticStreamSerializationAllowed, priority, cooperative; } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute *attrs = nullptr;
    unsigned int numAttrs = 0;
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, maxDynamicSharedSizeBytes;
};

namespace emu {
cudaError_t submit(cudaStream_t stream, std::function<void()> work);
void check_range(const void *p, size_t size, const char *what);

/* A kernel with its arguments: run() is what one thread of the grid does. */
struct Body {
    virtual ~Body() {}
    virtual void run() const = 0;
};
cudaError_t launch(const cudaLaunchConfig_t &config, const void *kernel,
                   std::shared_ptr<const Body> body);
void check_argument(const void *kernel, int position, const void *pointer);
cudaError_t set_function_attribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t get_function_attributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t occupancy(int *blocks, const void *kernel, int block, size_t shared);

template <class... P> struct KernelCall : Body {
    void (*kernel)(P...);
    std::tuple<typename std::decay<P>::type...> arguments;

    template <class... A>
    explicit KernelCall(void (*k)(P...), A &&...args)
        : kernel(k), arguments(std::forward<A>(args)...)
    {
    }
    void run() const override { call(std::index_sequence_for<P...>()); }
    template <size_t... I> void call(std::index_sequence<I...>) const
    {
        kernel(std::get<I>(arguments)...);
    }
};

/* A pointer given to a kernel must be one that the GPU can follow. */
template <class T> void check_one(const void *kernel, int position, const T &argument)
{
    using Target = typename std::remove_pointer<T>::type;
    if constexpr (std::is_pointer<T>::value && !std::is_function<Target>::value)
        check_argument(kernel, position, (const void *)argument);
    else
        (void)kernel, (void)position, (void)argument;
}
template <class Tuple, size_t... I>
void check_all(const void *kernel, const Tuple &arguments, std::index_sequence<I...>)
{
    (check_one(kernel, (int)I, std::get<I>(arguments)), ...);
    (void)kernel, (void)arguments;
}
} // namespace emu

/* The parameters are copied once for the launch, and again for every thread, as on the GPU. */
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args)
{
    static_assert(sizeof...(P) == sizeof...(A), "the kernel has another number of parameters");
    auto body = std::make_shared<const emu::KernelCall<P...>>(kernel, std::forward<A>(args)...);
    emu::check_all((const void *)kernel, body->arguments, std::index_sequence_for<P...>());
    return emu::launch(*config, (const void *)kernel, body);
}

template <class F>
cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute attribute, int value)
{
    return emu::set_function_attribute((const void *)kernel, attribute, value);
}
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F *kernel)
{
    return emu::get_function_attributes(attributes, (const void *)kernel);
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *kernel, int block,
                                                          size_t shared)
{
    return emu::occupancy(blocks, (const void *)kernel, block, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F *, size_t = 0,
                                               int limit = 0)
{
    *block = limit > 0 && limit < 256 ? limit : 256;
    *grid = 8;
    return cudaSuccess;
}

#endif
