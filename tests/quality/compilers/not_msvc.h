/* Read before the headers where clang stands for cl: what only gcc and clang know must not be met
   outside an #ifdef. */
#undef __clang__
#undef __SSE2__
#undef __aarch64__
#undef __ARM_NEON
#ifndef __cplusplus
#pragma GCC poison _Static_assert _Alignas restrict
#endif
#pragma GCC poison __attribute__ __extension__ __typeof__ __asm__ __int128 __builtin_expect        \
    __builtin_prefetch __builtin_clzll
#pragma GCC poison __builtin_inf __builtin_nan __builtin_bit_cast __builtin_memcpy __builtin_sqrt  \
    __builtin_fabs
