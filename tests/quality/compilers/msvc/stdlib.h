/* Stand-in: what the headers may call. */
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void *__cdecl malloc(size_t bytes);
void *__cdecl calloc(size_t count, size_t bytes);
void *__cdecl realloc(void *memory, size_t bytes);
void __cdecl free(void *memory);
int __cdecl abs(int x);
__declspec(noreturn) void __cdecl abort(void);
__declspec(noreturn) void __cdecl exit(int status);
void __cdecl qsort(void *base, size_t count, size_t bytes,
                   int(__cdecl *compare)(const void *, const void *));
#ifdef __cplusplus
}
#endif
