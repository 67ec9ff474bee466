/* Stand-in: no M_PI (without _USE_MATH_DEFINES), and in C++ overloads for float, as MSVC has
   them. */
#pragma once
#define _HUGE_ENUF 1e+300
#define INFINITY ((float)(_HUGE_ENUF * _HUGE_ENUF))
#define HUGE_VAL ((double)INFINITY)
#define HUGE_VALF ((float)INFINITY)
#define NAN (-(float)(INFINITY * 0.0F))
#define STAND_IN_MATH(name) double __cdecl name(double); float __cdecl name##f(float);
#define STAND_IN_MATH2(name)                                                                       \
    double __cdecl name(double, double);                                                           \
    float __cdecl name##f(float, float);
#ifdef __cplusplus
extern "C" {
#endif
STAND_IN_MATH(fabs)
STAND_IN_MATH(sqrt) STAND_IN_MATH(floor) STAND_IN_MATH(ceil) STAND_IN_MATH(sin) STAND_IN_MATH(cos)
    STAND_IN_MATH(acos) STAND_IN_MATH(exp) STAND_IN_MATH(expm1) STAND_IN_MATH(log)
        STAND_IN_MATH(log2)
        STAND_IN_MATH(trunc) STAND_IN_MATH(rint) STAND_IN_MATH2(fmin) STAND_IN_MATH2(fmax)
            STAND_IN_MATH2(pow) STAND_IN_MATH2(fmod) STAND_IN_MATH2(atan2) STAND_IN_MATH2(hypot)
                STAND_IN_MATH2(nextafter)
                    STAND_IN_MATH2(copysign) double __cdecl ldexp(double, int);
float __cdecl ldexpf(float, int);
double __cdecl frexp(double, int *);
#ifdef __cplusplus
}
float __cdecl fabs(float);
float __cdecl sqrt(float);
float __cdecl floor(float);
float __cdecl ceil(float);
float __cdecl sin(float);
float __cdecl cos(float);
float __cdecl log(float);
float __cdecl ldexp(float, int);
#endif
