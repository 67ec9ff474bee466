/* Stand-in: vectors are unions, as MSVC has them, so that + does not compile. The 15 calls of
   nbody.h, for each width. */
#pragma once
typedef union __declspec(align(16)) __m128 { float m128_f32[4]; } __m128;
typedef struct __declspec(align(16)) __m128d { double m128d_f64[2]; } __m128d;
typedef union __declspec(align(32)) __m256 { float m256_f32[8]; } __m256;
typedef struct __declspec(align(32)) __m256d { double m256d_f64[4]; } __m256d;
typedef union __declspec(align(64)) __m512 { float m512_f32[16]; } __m512;
typedef struct __declspec(align(64)) __m512d { double m512d_f64[8]; } __m512d;
#define STAND_IN_VECTOR(mm, vector, kind, real)   \
    vector mm##_loadu_##kind(real const *);        \
    void mm##_storeu_##kind(real *, vector);       \
    vector mm##_set1_##kind(real);                 \
    vector mm##_div_##kind(vector, vector);        \
    vector mm##_sqrt_##kind(vector);
#ifdef __cplusplus
extern "C" {
#endif
STAND_IN_VECTOR(_mm, __m128, ps, float)
STAND_IN_VECTOR(_mm, __m128d, pd, double)
STAND_IN_VECTOR(_mm256, __m256, ps, float)
STAND_IN_VECTOR(_mm256, __m256d, pd, double)
STAND_IN_VECTOR(_mm512, __m512, ps, float)
STAND_IN_VECTOR(_mm512, __m512d, pd, double)
#ifdef __cplusplus
}
#endif
