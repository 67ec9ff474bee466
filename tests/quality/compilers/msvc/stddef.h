/* Stand-in for MSVC's: declarations only, for clang --target=x86_64-pc-windows-msvc. See
   ../../test_compilers.sh. */
#pragma once
#ifdef _WIN64
typedef unsigned long long size_t;
typedef long long ptrdiff_t;
#else
typedef unsigned int size_t;
typedef int ptrdiff_t;
#endif
#ifdef __cplusplus
#define NULL 0
#else
#define NULL ((void *)0)
typedef unsigned short wchar_t;
#endif
#define offsetof(type, member) ((size_t)&(((type *)0)->member))
