/* Stand-in. */
#ifdef __cplusplus
extern "C"
#endif
void __cdecl _assert(const char *text, const char *file, unsigned line);
#undef assert
#define assert(expression) ((void)(!!(expression) || (_assert(#expression, __FILE__, __LINE__), 0)))
