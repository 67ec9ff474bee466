/* base.h - what every example needs: an error that ends the program, memory, time, medians, files.
   SPDX-License-Identifier: MIT OR Unlicense

   #define PROGRAM "name" and include this before all other headers: it asks for POSIX. Headers in
   examples/common hold static functions in C99 and C++17 (so memory from malloc is cast). */

#ifndef EXAMPLES_BASE_H
#define EXAMPLES_BASE_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, getopt_long, isatty, mkdir */
#endif

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PI 3.14159265358979323846

/* One text for CPU and GPU. */
#ifdef __CUDACC__
#define BOTH static __host__ __device__ inline
#else
#define BOTH static inline
#endif

#ifndef PROGRAM_EXIT
#define PROGRAM_EXIT exit
#endif

/* 1: another process says what is wrong with the command line. */
static int program_is_silent;

/* Ends the program with a message. `status`: 1 = a file, the machine or a failed check, 2 = the
   command line. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static inline void stop(int status, const char *format, ...)
{
    va_list arguments;
    char text[1024];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fflush(stdout);
    if (status == 1 || !program_is_silent) fprintf(stderr, PROGRAM ": %s\n", text);
    PROGRAM_EXIT(status);
    abort();
}

/* MUST(ugrid, ugrid_build(...), "building the grid"): 0 is success for all headers. */
#define MUST(header, call, what) \
    do { \
        header##_result const result_of_call = (call); \
        if (result_of_call != 0) stop(1, "%s: %s", what, header##_result_text(result_of_call)); \
    } while (0)

/* Zeros; never NULL. */
static inline void *zeros(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) stop(1, "out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return memory;
}

/* The same bytes with room for more. */
static inline void *grown(void *memory, size_t count, size_t bytes)
{
    void *more = realloc(memory, (count ? count : 1) * bytes);
    if (!more) stop(1, "out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return more;
}

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this thread: other programs do not count. */
static inline double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_size(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *numbers, int32_t count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

/* As mkdir -p. */
static inline void make_folder(const char *path)
{
    char part[1024];
    size_t k, length = strlen(path);
    if (length >= sizeof part) stop(2, "%.40s...: the name of the folder is too long", path);
    for (k = 1; k <= length; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) stop(1, "%s: %s", part, strerror(errno));
    }
}

/* The folders in front of a file's name. */
static inline void make_folder_of(const char *path)
{
    const char *last = strrchr(path, '/');
    char folder[1024];
    if (!last || last == path || (size_t)(last - path) >= sizeof folder) return;
    memcpy(folder, path, (size_t)(last - path));
    folder[last - path] = 0;
    make_folder(folder);
}

/* A file that is written, and its name for messages. */
typedef struct out_file {
    FILE *file;
    char path[1200];
} out_file;

static inline out_file create_file(const char *path)
{
    out_file out;
    snprintf(out.path, sizeof out.path, "%s", path);
    out.file = fopen(path, "wb");
    if (!out.file) stop(1, "%s: %s", path, strerror(errno));
    return out;
}

/* Makes the folder, too. */
static inline out_file create_in(const char *folder, const char *name)
{
    char path[1200];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return create_file(path);
}

static inline void close_file(const out_file *out)
{
    if (ferror(out->file) | fclose(out->file))
        stop(1, "%s: could not be written: %s", out->path, strerror(errno));
}

#endif /* EXAMPLES_BASE_H */
