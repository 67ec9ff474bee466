/* Stand-in. What MSVC calls deprecated (C4996), is so here. */
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void *__cdecl memcpy(void *to, const void *from, size_t bytes);
void *__cdecl memmove(void *to, const void *from, size_t bytes);
void *__cdecl memset(void *to, int value, size_t bytes);
int __cdecl memcmp(const void *a, const void *b, size_t bytes);
size_t __cdecl strlen(const char *text);
int __cdecl strcmp(const char *a, const char *b);
__declspec(deprecated) char *__cdecl strcpy(char *to, const char *from);
__declspec(deprecated) char *__cdecl strncpy(char *to, const char *from, size_t bytes);
__declspec(deprecated) char *__cdecl strerror(int error);
#ifdef __cplusplus
}
#endif
