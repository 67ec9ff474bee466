/* Stand-in. What MSVC calls deprecated (C4996), is so here. */
#pragma once
#include <stddef.h>
typedef struct _iobuf { void *_Placeholder; } FILE;
#ifdef __cplusplus
extern "C" {
#endif
int __cdecl puts(const char *text);
int __cdecl printf(const char *format, ...);
int __cdecl fprintf(FILE *file, const char *format, ...);
int __cdecl snprintf(char *to, size_t bytes, const char *format, ...);
__declspec(deprecated) int __cdecl sprintf(char *to, const char *format, ...);
__declspec(deprecated) FILE *__cdecl fopen(const char *path, const char *mode);
#ifdef __cplusplus
}
#endif
