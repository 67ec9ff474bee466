/* Stand-in: the calls of lbvh.h and its parts. */
#pragma once
#include <immintrin.h>
typedef union __declspec(align(16)) __m128i { __int32 m128i_i32[4]; } __m128i;
typedef union __declspec(align(8)) __m64 { __int32 m64_i32[2]; } __m64;
#define _MM_SHUFFLE(d, c, b, a) (((d) << 6) | ((c) << 4) | ((b) << 2) | (a))
#define _MM_TRANSPOSE4_PS(a, b, c, d) ((a) = (b), (c) = (d))
#define STAND_IN_OF_TWO(vector, name) vector _mm_##name(vector, vector);
#define STAND_IN_TURNED(to, from, name) to _mm_##name(from);
#ifdef __cplusplus
extern "C" {
#endif
STAND_IN_OF_TWO(__m128, add_ps)
STAND_IN_OF_TWO(__m128, add_ss)
STAND_IN_OF_TWO(__m128, and_ps)
STAND_IN_OF_TWO(__m128, andnot_ps)
STAND_IN_OF_TWO(__m128, cmpgt_ps)
STAND_IN_OF_TWO(__m128, cmple_ps)
STAND_IN_OF_TWO(__m128, cmplt_ps)
STAND_IN_OF_TWO(__m128, max_ps)
STAND_IN_OF_TWO(__m128, min_ps)
STAND_IN_OF_TWO(__m128, movehl_ps)
STAND_IN_OF_TWO(__m128, movelh_ps)
STAND_IN_OF_TWO(__m128, mul_ps)
STAND_IN_OF_TWO(__m128, or_ps)
STAND_IN_OF_TWO(__m128, sub_ps)
STAND_IN_OF_TWO(__m128d, cmpgt_pd)
STAND_IN_OF_TWO(__m128d, cmplt_pd)
STAND_IN_OF_TWO(__m128d, max_pd)
STAND_IN_OF_TWO(__m128d, min_pd)
STAND_IN_OF_TWO(__m128d, unpacklo_pd)
STAND_IN_OF_TWO(__m128, unpackhi_ps)
STAND_IN_OF_TWO(__m128, unpacklo_ps)
STAND_IN_OF_TWO(__m128i, cmpgt_epi32)
STAND_IN_OF_TWO(__m128i, add_epi32)
STAND_IN_OF_TWO(__m128i, and_si128)
STAND_IN_OF_TWO(__m128i, andnot_si128)
STAND_IN_OF_TWO(__m128i, unpackhi_epi32)
STAND_IN_OF_TWO(__m128i, unpacklo_epi32)
STAND_IN_OF_TWO(__m128i, or_si128)
STAND_IN_OF_TWO(__m128i, xor_si128)
STAND_IN_TURNED(__m128, __m128d, castpd_ps)
STAND_IN_TURNED(__m128i, __m128, castps_si128)
STAND_IN_TURNED(__m128, __m128i, castsi128_ps)
STAND_IN_TURNED(__m128d, __m128i, castsi128_pd)
STAND_IN_TURNED(__m128, __m128d, cvtpd_ps)
STAND_IN_TURNED(__m128d, __m128, cvtps_pd)
STAND_IN_TURNED(float, __m128, cvtss_f32)
STAND_IN_TURNED(int, __m128, movemask_ps)
STAND_IN_TURNED(__m128i, int, set1_epi32)
STAND_IN_TURNED(__m128, void, setzero_ps)
STAND_IN_TURNED(__m128d, void, setzero_pd)
__m128 _mm_shuffle_ps(__m128, __m128, unsigned);
__m128d _mm_shuffle_pd(__m128d, __m128d, int);
__m128 _mm_setr_ps(float, float, float, float);
__m128i _mm_setr_epi32(int, int, int, int);
__m128d _mm_set_pd(double, double);
__m128i _mm_set_epi32(int, int, int, int);
__m128i _mm_srai_epi32(__m128i, int);
void _mm_storel_pi(__m64 *, __m128);
#ifdef __cplusplus
}
#endif
