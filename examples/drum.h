/* drum.h - what drum.c (serial) and drum.cu (GPU) share: everything but the time step itself.
   SPDX-License-Identifier: MIT OR Unlicense

   (drum_draw.h has the pictures, dem.h what happens between two spheres that touch.)

   >>options   the command line
   >>stl       triangles from and to an STL file, and a drum with lifters to begin with
   >>mesh      corners that are one become one; edges; the drum as it turns
   >>inside    is a point inside of a closed mesh?
   >>state     spheres, and where they start
   >>setup     model, grid and lists as the options want them
   >>figures   energies, contacts, centre of mass
   >>vtk       files for ParaView: spheres, the drum, the network of contacts
   >>progress  the bar with steps/s and time left
   >>run       the loop over all steps: pictures, progress, figures

   The same text is C99 and C++17, so memory from malloc is cast. */

#ifndef DRUM_H
#define DRUM_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty, mkdir */
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

#include "../ugrid.h"
#include "../lbvh.h"
#include "../nlist.h"
#include "common/dem.h"

#define DRUM_PI 3.14159265358979323846

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

typedef struct drum_options {
    int32_t n, steps, sort_every, check_every, width, half, history, deterministic, frames, seed;
    int32_t shuffle, vtk, ascii, demo, check, help; /* flags */
    const char *layout_name, *mode_name, *stl, *out;
    float length, fill, spacing, rpm, dt, friction, softness, skin;
    /* found from the names */
    nlist_layout layout;
    nlist_mode mode;
} drum_options;

/* Ends the program with a sentence. `status`: 1 = a file or the machine, 2 = the command line. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static void drum_stop(int status, const char *format, ...)
{
    va_list arguments;
    fputs("drum: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static void drum_must_grid(ugrid_result result, const char *what)
{
    if (result != UGRID_OK) drum_stop(1, "%s: %s", what, ugrid_result_text(result));
}

static void drum_must_tree(lbvh_result result, const char *what)
{
    if (result != LBVH_OK) drum_stop(1, "%s: %s", what, lbvh_result_text(result));
}

static void drum_must_list(nlist_result result, const char *what)
{
    if (result != NLIST_OK) drum_stop(1, "%s: %s", what, nlist_result_text(result));
}

static void *drum_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) drum_stop(1, "out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return memory;
}

typedef struct drum_name { const char *name; int value; } drum_name;

static const drum_name drum_layouts[] = {
    {"hybrid", NLIST_HYBRID}, {"static", NLIST_STATIC}, {"dynamic", NLIST_DYNAMIC}, {"compact", NLIST_COMPACT}, {NULL, 0}
};
static const drum_name drum_modes[] = {
    {"auto", NLIST_AUTO}, {"particle", NLIST_PER_PARTICLE}, {"contact", NLIST_PER_CONTACT}, {"reduce", NLIST_REDUCE}, {NULL, 0}
};

/* One line of --help, and where the value goes: exactly one of the three pointers is set. */
typedef struct drum_flag {
    const char *name, *value, *help;    /* value NULL: a flag that takes none */
    int32_t *whole;
    float *real;
    const char **text;
    double least, most;
} drum_flag;

enum { DRUM_FLAGS = 28 };

static void drum_flag_table(drum_options *o, drum_flag table[DRUM_FLAGS])
{
    const drum_flag flags[DRUM_FLAGS] = {
        {"-n", "N", "spheres (default 2000); their size follows: together they fill as much of the drum",
         &o->n, NULL, NULL, 1, 200e6},
        {"--steps", "N", "time steps (default 9000)", &o->steps, NULL, NULL, 0, INT_MAX / 2},
        {"--sort-every", "N", "steps between two sorts of all particle data by cells, 0 = never (default 100)",
         &o->sort_every, NULL, NULL, 0, 1e9},
        {"--history", "0|1", "keep the tangential springs from step to step (default 1)", &o->history, NULL, NULL, 0, 1},
        {"--layout", "NAME", "of the list of sphere pairs: hybrid (default), static, dynamic, compact",
         NULL, NULL, &o->layout_name, 0, 0},
        {"--width", "N", "slots per sphere in hybrid and static (default 8, 16 with --half 0)", &o->width, NULL, NULL, 0, 1024},
        {"--half", "0|1", "list each pair once (default 1), or in both rows", &o->half, NULL, NULL, 0, 1},
        {"--mode", "NAME", "how forces are added up: auto (default), particle, contact, reduce", NULL, NULL, &o->mode_name, 0, 0},
        {"--skin", "S", "lists of pairs reach S radii further and are kept while nobody moved by half of it (default 0)",
         NULL, &o->skin, NULL, 0, 2},
        {"--deterministic", "0|1", "GPU: the same lists and sums in every run, bit for bit (default 0)",
         &o->deterministic, NULL, NULL, 0, 1},
        {"--check-every", "N", "GPU: steps between two looks at what the device met (default 100)",
         &o->check_every, NULL, NULL, 1, 1e6},
        {"--stl", "FILE", "the drum, in metres, axis y; written where there is no such file (default OUT/drum.stl, always written)",
         NULL, NULL, &o->stl, 0, 0},
        {"--ascii", NULL, "write STL and VTK files as text", &o->ascii, NULL, NULL, 0, 1},
        {"--length", "L", "of the drum that is written, in diameters (default 0.2)", NULL, &o->length, NULL, 0.01, 100},
        {"--fill", "F", "part of the drum that settled spheres fill (default 0.35)", NULL, &o->fill, NULL, 0.001, 0.7},
        {"--spacing", "S", "between spheres at the start, in diameters (default 1.02; below 1 they touch from the first step on)",
         NULL, &o->spacing, NULL, 0.9, 2},
        {"--rpm", "W", "turns per minute (default 30)", NULL, &o->rpm, NULL, -1e4, 1e4},
        {"--friction", "MU", "coefficient of friction (default 0.5)", NULL, &o->friction, NULL, 0, 10},
        {"--softness", "S", "overlap, in radii, of two that meet as fast as after a fall of half the drum's radius (default 0.15)",
         NULL, &o->softness, NULL, 1e-4, 0.5},
        {"--dt", "T", "time step in seconds (default 0: a 30th of the time that a collision takes)", NULL, &o->dt, NULL, 0, 1},
        {"--seed", "N", "of the random offsets at the start (default 1)", &o->seed, NULL, NULL, 0, INT_MAX},
        {"--shuffle", NULL, "start with the spheres in random order, as after a long time without sorting",
         &o->shuffle, NULL, NULL, 0, 1},
        {"--frames", "N", "draw N pictures of the run, frame_0000.png ...", &o->frames, NULL, NULL, 1, 100000},
        {"--vtk", NULL, "with each frame, or of the end: spheres_0000.vtk, contacts_0000.vtk, drum_0000.vtk ...",
         &o->vtk, NULL, NULL, 0, 1},
        {"--out", "DIR", "where files go (default build/demo)", NULL, NULL, &o->out, 0, 0},
        {"--demo", NULL, "pictures of the default run", &o->demo, NULL, NULL, 0, 1},
        {"--check", NULL, "print nothing but \"name value\" lines", &o->check, NULL, NULL, 0, 1},
        {"--help", NULL, "this text", &o->help, NULL, NULL, 0, 1}
    };
    memcpy(table, flags, sizeof flags);
}

static void drum_help(const drum_flag *flags, const char *program)
{
    int k;
    printf("usage: %s [options]\n\nSpheres in a rotating drum. Options:\n\n", program);
    for (k = 0; k < DRUM_FLAGS; k++)
        printf("  %-15s %-4s %s\n", flags[k].name, flags[k].value ? flags[k].value : "", flags[k].help);
    printf("\nexample: %s -n 20000 --length 0.5 --frames 50 --vtk --out pictures\n", program);
}

static double drum_number(const drum_flag *flag, const char *text)
{
    char *end;
    double const value = strtod(text, &end);
    if (end == text || *end || !(value >= flag->least && value <= flag->most))
        drum_stop(2, "%s %s: a number from %g to %g is needed", flag->name, text, flag->least, flag->most);
    if (flag->whole && value != floor(value)) drum_stop(2, "%s %s: a whole number is needed", flag->name, text);
    return value;
}

/* Stores one option; returns how many arguments it took. "--name=value" is understood too. */
static int drum_take_flag(const drum_flag *flags, char **arguments)
{
    const char *equals = strchr(arguments[0], '=');
    size_t const length = equals && arguments[0][1] == '-' ? (size_t)(equals - arguments[0]) : strlen(arguments[0]);
    const char *value = arguments[0][length] ? arguments[0] + length + 1 : NULL;
    int const taken = value ? 1 : 2;
    int k;
    for (k = 0; k < DRUM_FLAGS; k++)
        if (strlen(flags[k].name) == length && strncmp(flags[k].name, arguments[0], length) == 0) break;
    if (k == DRUM_FLAGS) drum_stop(2, "unknown option %s (--help lists them)", arguments[0]);
    if (!flags[k].value) {
        if (value) drum_stop(2, "%s takes no value", flags[k].name);
        *flags[k].whole = 1;
        return 1;
    }
    if (!value) value = arguments[1];
    if (!value) drum_stop(2, "%s needs a value: %s", flags[k].name, flags[k].value);
    if (flags[k].text) *flags[k].text = value;
    if (flags[k].whole) *flags[k].whole = (int32_t)drum_number(&flags[k], value);
    if (flags[k].real) *flags[k].real = (float)drum_number(&flags[k], value);
    return taken;
}

static int drum_find(const drum_name *names, const char *flag, const char *name)
{
    int k;
    for (k = 0; names[k].name; k++)
        if (strcmp(names[k].name, name) == 0) return names[k].value;
    drum_stop(2, "%s %s: there is no such name (--help lists them)", flag, name);
}

static drum_options drum_defaults(void)
{
    drum_options o;
    memset(&o, 0, sizeof o);
    o.n = 2000;
    o.steps = 9000;
    o.sort_every = o.check_every = 100;
    o.width = -1;
    o.half = o.history = 1;
    o.seed = 1;
    o.layout_name = "hybrid";
    o.mode_name = "auto";
    o.out = "build/demo";
    o.length = 0.2f;
    o.fill = 0.35f;
    o.spacing = 1.02f;
    o.rpm = 30;
    o.friction = 0.5f;
    o.softness = 0.15f;
    return o;
}

static drum_options drum_parse(int argc, char **argv)
{
    drum_options o = drum_defaults();
    drum_flag flags[DRUM_FLAGS];
    int k;
    drum_flag_table(&o, flags);
    for (k = 1; k < argc;) k += drum_take_flag(flags, argv + k);
    if (o.help) { drum_help(flags, argv[0]); exit(0); }
    if (o.demo && !o.frames) o.frames = 12;
    if (o.width < 0) o.width = o.half ? 8 : 16;
    o.layout = (nlist_layout)drum_find(drum_layouts, "--layout", o.layout_name);
    o.mode = (nlist_mode)drum_find(drum_modes, "--mode", o.mode_name);
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>stl
   ------------------------------------------------------------------------------------------------ */

/* Triangles without any order: corner c of triangle t is corner[9 * t + 3 * c]. */
typedef struct drum_soup {
    int32_t triangles;
    float *corner;
} drum_soup;

/* As mkdir -p. */
static void drum_make_folder(const char *path)
{
    char part[1024];
    size_t k, length = strlen(path);
    if (length >= sizeof part) drum_stop(2, "--out: the name is too long");
    for (k = 1; k <= length; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) drum_stop(1, "%s: %s", part, strerror(errno));
    }
}

static FILE *drum_create(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) drum_stop(1, "%s: %s", path, strerror(errno));
    return file;
}

static void drum_close(FILE *file, const char *path)
{
    if (ferror(file) | fclose(file)) drum_stop(1, "%s: could not be written: %s", path, strerror(errno));
}

static void drum_put_little(FILE *file, uint32_t word, int bytes)
{
    int k;
    for (k = 0; k < bytes; k++) fputc((int)(word >> 8 * k & 255), file);
}

static void drum_put_little_floats(FILE *file, const float *values, int count)
{
    uint32_t word;
    int k;
    for (k = 0; k < count; k++) {
        memcpy(&word, values + k, 4);
        drum_put_little(file, word, 4);
    }
}

static void drum_normal(const float *corner, float normal[3])
{
    float u[3], v[3], length;
    int a;
    for (a = 0; a < 3; a++) {
        u[a] = corner[3 + a] - corner[a];
        v[a] = corner[6 + a] - corner[a];
    }
    normal[0] = u[1] * v[2] - u[2] * v[1];
    normal[1] = u[2] * v[0] - u[0] * v[2];
    normal[2] = u[0] * v[1] - u[1] * v[0];
    length = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    for (a = 0; a < 3; a++) normal[a] = length > 0 ? normal[a] / length : 0;
}

/* 80 bytes of any text, the number of triangles, and 50 bytes for each: normal, corners, two bytes that nobody uses. */
static void drum_write_binary(FILE *file, const drum_soup *soup)
{
    char head[80] = "a drum with lifters (binary STL, metres, axis y)";
    int32_t t;
    fwrite(head, 1, sizeof head, file);
    drum_put_little(file, (uint32_t)soup->triangles, 4);
    for (t = 0; t < soup->triangles; t++) {
        float normal[3];
        drum_normal(soup->corner + 9 * (size_t)t, normal);
        drum_put_little_floats(file, normal, 3);
        drum_put_little_floats(file, soup->corner + 9 * (size_t)t, 9);
        drum_put_little(file, 0, 2);
    }
}

static void drum_write_text(FILE *file, const drum_soup *soup)
{
    int32_t t;
    int c;
    fprintf(file, "solid drum\n");
    for (t = 0; t < soup->triangles; t++) {
        const float *corner = soup->corner + 9 * (size_t)t;
        float n[3];
        drum_normal(corner, n);
        fprintf(file, "facet normal %.9g %.9g %.9g\n outer loop\n", (double)n[0], (double)n[1], (double)n[2]);
        for (c = 0; c < 3; c++)
            fprintf(file, "  vertex %.9g %.9g %.9g\n", (double)corner[3 * c], (double)corner[3 * c + 1], (double)corner[3 * c + 2]);
        fprintf(file, " endloop\nendfacet\n");
    }
    fprintf(file, "endsolid drum\n");
}

static void drum_write_stl(const char *path, const drum_soup *soup, int ascii)
{
    FILE *file = drum_create(path);
    if (ascii) drum_write_text(file, soup);
    else drum_write_binary(file, soup);
    drum_close(file, path);
}

/* The whole file, and a zero behind it. */
static unsigned char *drum_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    size_t room = 0, got;
    *size = 0;
    if (!file) drum_stop(1, "%s: %s", path, strerror(errno));
    do {
        room = room ? 2 * room : 65536;
        bytes = (unsigned char *)realloc(bytes, room);
        if (!bytes) drum_stop(1, "%s: out of memory", path);
        got = fread(bytes + *size, 1, room - *size - 1, file);
        *size += got;
    } while (got > 0);
    if (ferror(file)) drum_stop(1, "%s: %s", path, strerror(errno));
    fclose(file);
    bytes[*size] = 0;
    return bytes;
}

static uint32_t drum_word(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static drum_soup drum_soup_new(int32_t triangles)
{
    drum_soup soup;
    soup.triangles = triangles;
    soup.corner = (float *)drum_alloc((size_t)triangles * 9, sizeof(float));
    return soup;
}

static drum_soup drum_read_binary(const unsigned char *bytes, uint32_t triangles)
{
    drum_soup soup = drum_soup_new((int32_t)triangles);
    uint32_t t, word;
    int k;
    for (t = 0; t < triangles; t++)
        for (k = 0; k < 9; k++) {
            word = drum_word(bytes + 84 + 50 * (size_t)t + 12 + 4 * k);
            memcpy(soup.corner + 9 * (size_t)t + k, &word, 4);
        }
    return soup;
}

/* Every "vertex" and the three numbers behind it; names, normals and loops say nothing that is needed. */
static drum_soup drum_read_text(const char *path, const char *text)
{
    static const char word[] = "vertex";
    const char *at;
    size_t corners = 0, k = 0;
    drum_soup soup;
    for (at = text; (at = strstr(at, word)) != NULL; at += sizeof word - 1) corners++;
    if (corners == 0 || corners % 3 != 0 || corners / 3 > INT32_MAX / 16)
        drum_stop(
            1, "%s: is no STL file: neither 84 + 50 n bytes for n triangles, nor text with three lines \"vertex x y z\" for each",
            path);
    soup = drum_soup_new((int32_t)(corners / 3));
    for (at = text; (at = strstr(at, word)) != NULL;) {
        int a;
        for (a = 0, at += sizeof word - 1; a < 3; a++) {
            char *end;
            soup.corner[k++] = (float)strtod(at, &end);
            if (end == at)
                drum_stop(1, "%s: \"vertex\" number %ld is not followed by three numbers", path, (long)((k - 1) / 3 + 1));
            at = end;
        }
    }
    return soup;
}

/* Binary or text? The size tells; the word "solid" does not, for many binary files begin with it too. */
static drum_soup drum_read_stl(const char *path)
{
    size_t size, k;
    unsigned char *bytes = drum_load(path, &size);
    uint32_t const triangles = size >= 84 ? drum_word(bytes + 80) : 0;
    int const binary = triangles > 0 && triangles < INT32_MAX / 16 && size == 84 + 50 * (size_t)triangles;
    drum_soup const soup = binary ? drum_read_binary(bytes, triangles) : drum_read_text(path, (const char *)bytes);
    for (k = 0; k < 9 * (size_t)soup.triangles; k++)
        if (!(fabsf(soup.corner[k]) < 1e6f))
            drum_stop(1, "%s: triangle %ld has a coordinate that no drum has", path, (long)(k / 9));
    free(bytes);
    return soup;
}

/* The drum that is written when there is no other: a cylinder of radius 0.2 m around the y axis, closed at both ends,
   with 6 lifters along its wall. Round the axis it has 96 segments:

          7 ,---. 8           once in 16 segments,
           /     \            an eighth of the radius high
     -----'       `-----
          6       9
*/
#define DRUM_RADIUS 0.2f
enum { DRUM_SEGMENTS = 96, DRUM_LIFTERS = 6, DRUM_RINGS = 8 };

static void drum_profile(int k, float part, float y, float p[3])
{
    int const at = k % (DRUM_SEGMENTS / DRUM_LIFTERS);
    double const angle = 2 * DRUM_PI * (k % DRUM_SEGMENTS) / DRUM_SEGMENTS;
    float const radius = DRUM_RADIUS * part * (at == 7 || at == 8 ? 0.875f : 1.0f);
    p[0] = radius * (float)cos(angle);
    p[1] = y;
    p[2] = radius * (float)sin(angle);
}

/* Two triangles between segments k and k + 1; for the innermost ring, where two corners are one, only the first has an area. */
static void drum_quad(drum_soup *soup, int k, float part0, float y0, float part1, float y1)
{
    float p[4][3];
    static const int corner[6] = {0, 2, 1, 1, 2, 3};
    int c, count = part0 > 0 && part1 > 0 ? 6 : 3;
    drum_profile(k, part0, y0, p[0]);
    drum_profile(k + 1, part0, y0, p[1]);
    drum_profile(k, part1, y1, p[2]);
    drum_profile(k + 1, part1, y1, p[3]);
    if (part1 <= 0) memcpy(p[2], p[3], sizeof p[2]);
    if (part0 <= 0) memcpy(p[1], p[3], sizeof p[1]);
    for (c = 0; c < count; c++) memcpy(soup->corner + 9 * (size_t)soup->triangles + 3 * c, p[corner[c]], sizeof p[0]);
    soup->triangles += count / 3;
}

static drum_soup drum_make(float length)
{
    float const half = length * DRUM_RADIUS; /* length is in diameters */
    int const rows = (int)ceilf(2 * half / (0.1f * DRUM_RADIUS));
    drum_soup soup = drum_soup_new(DRUM_SEGMENTS * 2 * (rows + 2 * DRUM_RINGS));
    int k, j;
    soup.triangles = 0;
    for (k = 0; k < DRUM_SEGMENTS; k++) {
        for (j = 0; j < rows; j++)
            drum_quad(&soup, k, 1, half * (2 * (float)j / (float)rows - 1), 1, half * (2 * (float)(j + 1) / (float)rows - 1));
        for (j = 0; j < DRUM_RINGS; j++) {
            float const inner = (float)j / DRUM_RINGS, outer = (float)(j + 1) / DRUM_RINGS;
            drum_quad(&soup, k, inner, -half, outer, -half);
            drum_quad(&soup, k, outer, half, inner, half);
        }
    }
    return soup;
}

/* Writes the drum where there is none, and reads it. */
static drum_soup drum_get_soup(const drum_options *o)
{
    char path[1100];
    struct stat seen;
    snprintf(path, sizeof path, "%s", o->stl ? o->stl : "");
    if (!o->stl) {
        drum_make_folder(o->out);
        snprintf(path, sizeof path, "%s/drum.stl", o->out);
    }
    if (!o->stl || (stat(path, &seen) != 0 && errno == ENOENT)) {
        drum_soup made = drum_make(o->length);
        drum_write_stl(path, &made, o->ascii);
        free(made.corner);
    }
    return drum_read_stl(path);
}

/* ------------------------------------------------------------------------------------------------
   >>mesh
   ------------------------------------------------------------------------------------------------ */

/* Two corners, lower vertex first, and the triangles on both sides; right -1: there is none, the mesh is open here. */
typedef struct drum_edge { int32_t a, b, left, right; } drum_edge;

typedef struct drum_mesh {
    int32_t vertices, triangles, edges, open_edges;
    float *rest;            /* [3 * vertices] as in the file */
    float *now;             /* [3 * vertices] turned */
    int32_t *indices;       /* [3 * triangles] seen from outside, the corners go round against the clock */
    drum_edge *edge;
    float radius, low, high;/* of the smallest cylinder around the y axis that holds it all */
    double volume;
} drum_mesh;

typedef struct drum_corner { float p[3]; int32_t at; } drum_corner;

static int drum_order_floats(const float *a, const float *b, int count)
{
    int k;
    for (k = 0; k < count; k++)
        if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    return 0;
}

static int drum_order_corners(const void *a, const void *b)
{
    return drum_order_floats(((const drum_corner *)a)->p, ((const drum_corner *)b)->p, 3);
}

/* Corners at the same place become one vertex: only then are neighbouring triangles known as neighbours once they turn. */
static void drum_weld(drum_mesh *mesh, const drum_soup *soup)
{
    int32_t const count = 3 * soup->triangles;
    drum_corner *corner = (drum_corner *)drum_alloc((size_t)count, sizeof *corner);
    int32_t k;
    mesh->rest = (float *)drum_alloc((size_t)count * 3, sizeof(float));
    mesh->indices = (int32_t *)drum_alloc((size_t)count, sizeof(int32_t));
    for (k = 0; k < count; k++) {
        memcpy(corner[k].p, soup->corner + 3 * (size_t)k, sizeof corner[k].p);
        corner[k].at = k;
    }
    qsort(corner, (size_t)count, sizeof *corner, drum_order_corners);
    for (k = 0; k < count; k++) {
        if (k == 0 || drum_order_corners(corner + k - 1, corner + k) != 0)
            memcpy(mesh->rest + 3 * (size_t)mesh->vertices++, corner[k].p, sizeof corner[k].p);
        mesh->indices[corner[k].at] = mesh->vertices - 1;
    }
    free(corner);
}

/* Keeps the triangles whose three corners are three vertices: others are edges or points, which their neighbours have too. */
static void drum_drop_degenerate(drum_mesh *mesh, int32_t triangles)
{
    int32_t t;
    mesh->triangles = 0;
    for (t = 0; t < triangles; t++) {
        const int32_t *v = mesh->indices + 3 * (size_t)t;
        if (v[0] == v[1] || v[1] == v[2] || v[2] == v[0]) continue;
        memmove(mesh->indices + 3 * (size_t)mesh->triangles++, v, 3 * sizeof *v);
    }
}

static int drum_order_edges(const void *a, const void *b)
{
    const drum_edge *x = (const drum_edge *)a, *y = (const drum_edge *)b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    return (x->left > y->left) - (x->left < y->left);
}

/* In a closed surface each edge has two triangles. */
static void drum_find_edges(drum_mesh *mesh)
{
    int32_t const sides = 3 * mesh->triangles;
    int32_t k;
    mesh->edge = (drum_edge *)drum_alloc((size_t)sides, sizeof *mesh->edge);
    for (k = 0; k < sides; k++) {
        int32_t const u = mesh->indices[k], v = mesh->indices[k % 3 == 2 ? k - 2 : k + 1];
        mesh->edge[k].a = u < v ? u : v;
        mesh->edge[k].b = u < v ? v : u;
        mesh->edge[k].left = k / 3;
        mesh->edge[k].right = -1;
    }
    qsort(mesh->edge, (size_t)sides, sizeof *mesh->edge, drum_order_edges);
    for (k = 0; k < sides; k++) {
        drum_edge *edge = mesh->edge + mesh->edges++;
        *edge = mesh->edge[k];
        if (k + 1 < sides && mesh->edge[k + 1].a == edge->a && mesh->edge[k + 1].b == edge->b) edge->right = mesh->edge[++k].left;
        else mesh->open_edges++;
    }
}

static const float *drum_vertex(const float *vertices, const drum_mesh *mesh, int32_t triangle, int corner)
{
    return vertices + 3 * (size_t)mesh->indices[3 * (size_t)triangle + (size_t)corner];
}

/* Six times the volume of the tetrahedron under a triangle; negative where it is seen from inside. */
static double drum_six_volumes(const float *a, const float *b, const float *c)
{
    return (double)a[0] * ((double)b[1] * (double)c[2] - (double)b[2] * (double)c[1]) +
           (double)a[1] * ((double)b[2] * (double)c[0] - (double)b[0] * (double)c[2]) +
           (double)a[2] * ((double)b[0] * (double)c[1] - (double)b[1] * (double)c[0]);
}

/* Volume and size; turns all triangles round if they are given as seen from inside. */
static void drum_measure_mesh(drum_mesh *mesh)
{
    int32_t t, v;
    mesh->low = 1e30f;
    mesh->high = -1e30f;
    for (t = 0; t < mesh->triangles; t++)
        mesh->volume += drum_six_volumes(drum_vertex(mesh->rest, mesh, t, 0), drum_vertex(mesh->rest, mesh, t, 1),
                                         drum_vertex(mesh->rest, mesh, t, 2)) / 6;
    for (t = 0; mesh->volume < 0 && t < mesh->triangles; t++) {
        int32_t *corner = mesh->indices + 3 * (size_t)t, second = corner[1];
        corner[1] = corner[2];
        corner[2] = second;
    }
    mesh->volume = fabs(mesh->volume);
    for (v = 0; v < mesh->vertices; v++) {
        const float *p = mesh->rest + 3 * (size_t)v;
        float const radius = sqrtf(p[0] * p[0] + p[2] * p[2]);
        if (radius > mesh->radius) mesh->radius = radius;
        if (p[1] < mesh->low) mesh->low = p[1];
        if (p[1] > mesh->high) mesh->high = p[1];
    }
}

/* A vertex of the drum at rest, turned round the y axis. */
UGRID_FN void drum_turn(const float rest[3], float cosine, float sine, float now[3])
{
    now[0] = cosine * rest[0] + sine * rest[2];
    now[1] = rest[1];
    now[2] = cosine * rest[2] - sine * rest[0];
}

static void drum_turn_mesh(drum_mesh *mesh, double angle)
{
    int32_t v;
    for (v = 0; v < mesh->vertices; v++)
        drum_turn(mesh->rest + 3 * (size_t)v, (float)cos(angle), (float)sin(angle), mesh->now + 3 * (size_t)v);
}

static drum_mesh drum_mesh_new(const drum_soup *soup)
{
    drum_mesh mesh;
    memset(&mesh, 0, sizeof mesh);
    drum_weld(&mesh, soup);
    drum_drop_degenerate(&mesh, soup->triangles);
    drum_find_edges(&mesh);
    drum_measure_mesh(&mesh);
    mesh.now = (float *)drum_alloc((size_t)mesh.vertices * 3, sizeof(float));
    drum_turn_mesh(&mesh, 0);
    if (mesh.open_edges) fprintf(stderr, "drum: the mesh has %ld open edges: spheres may get lost there\n", (long)mesh.open_edges);
    if (!(mesh.volume > 0)) drum_stop(1, "the mesh has no room inside");
    return mesh;
}

static void drum_mesh_free(drum_mesh *mesh)
{
    free(mesh->rest);
    free(mesh->now);
    free(mesh->indices);
    free(mesh->edge);
    memset(mesh, 0, sizeof *mesh);
}

/* The mesh as nlist.h and lbvh.h take it. */
static nlist_mesh drum_list_mesh(const drum_mesh *mesh)
{
    nlist_mesh m;
    memset(&m, 0, sizeof m);
    m.vertices = mesh->now;
    m.vertex_count = mesh->vertices;
    m.indices = mesh->indices;
    m.triangles = mesh->triangles;
    return m;
}

static lbvh_desc drum_tree_desc(const nlist_mesh *mesh)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    desc.indices = mesh->indices;
    desc.vertices = mesh->vertex_count;
    return desc;
}

/* ------------------------------------------------------------------------------------------------
   >>inside: a line from p along the y axis crosses a closed surface an odd number of times if p is inside

   In the plane of x and z the line is a point, and each triangle asks whether it holds that point, by the same question
   for its edges in that plane: an odd number of them is crossed by a line along x. An edge gives both of its triangles the same
   answer, whatever is rounded; so no line slips between two triangles, and none counts both.
   ------------------------------------------------------------------------------------------------ */

static int drum_crosses_edge(const float *a, const float *b, const float p[3])
{
    if ((a[2] > p[2]) == (b[2] > p[2])) return 0;
    if (a[2] > b[2]) {
        const float *keep = a;
        a = b;
        b = keep;
    }
    return (double)p[0] <
           (double)a[0] + ((double)p[2] - (double)a[2]) / ((double)b[2] - (double)a[2]) * ((double)b[0] - (double)a[0]);
}

/* Is the triangle above p, in the direction of y? */
static int drum_above(const float *const c[3], const float p[3])
{
    double const ux = (double)c[1][0] - (double)c[0][0], uz = (double)c[1][2] - (double)c[0][2];
    double const vx = (double)c[2][0] - (double)c[0][0], vz = (double)c[2][2] - (double)c[0][2];
    double const px = (double)p[0] - (double)c[0][0], pz = (double)p[2] - (double)c[0][2], area = ux * vz - uz * vx;
    double s, t;
    if (!(drum_crosses_edge(c[0], c[1], p) ^ drum_crosses_edge(c[1], c[2], p) ^ drum_crosses_edge(c[2], c[0], p))) return 0;
    if (area == 0) return 0;
    s = (px * vz - pz * vx) / area;
    t = (ux * pz - uz * px) / area;
    return (double)c[0][1] + s * ((double)c[1][1] - (double)c[0][1]) + t * ((double)c[2][1] - (double)c[0][1]) > (double)p[1];
}

static int drum_inside(const lbvh *tree, const nlist_mesh *mesh, float top, const float p[3])
{
    float const end[3] = {p[0], top, p[2]};
    lbvh_overlap line;
    int inside = 0;
    if (!(p[1] <= top)) return 0;
    line = lbvh_overlap_between(tree, p, end);
    while (lbvh_next(&line)) {
        const float *corner[3];
        nlist_mesh_corners(mesh, line.id, corner);
        inside ^= drum_above(corner, p);
    }
    return inside;
}

/* Is the surface at least that far away from p? */
static int drum_clear(const lbvh *tree, const nlist_mesh *mesh, const float p[3], float distance)
{
    lbvh_overlap near = lbvh_overlap_sphere(tree, p, distance);
    while (lbvh_next(&near)) {
        float q[3];
        nlist_mesh_closest(mesh, near.id, p, q);
        if ((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1]) + (q[2] - p[2]) * (q[2] - p[2]) < distance * distance)
            return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------------------------------------
   >>state
   ------------------------------------------------------------------------------------------------ */

/* As dem_system has them, 4 numbers per sphere and array; in an order that changes when they are sorted. */
typedef struct drum_state {
    int32_t n;
    float *pos, *vel, *spin;
    float *sums;            /* [6 * n] force and torque at these positions */
    int32_t *id;            /* [n] the number that the sphere had at the start */
} drum_state;

static drum_state drum_state_new(int32_t n)
{
    drum_state state;
    state.n = n;
    state.pos = (float *)drum_alloc((size_t)n * 4, sizeof(float));
    state.vel = (float *)drum_alloc((size_t)n * 4, sizeof(float));
    state.spin = (float *)drum_alloc((size_t)n * 4, sizeof(float));
    state.sums = (float *)drum_alloc((size_t)n * DEM_SUMS, sizeof(float));
    state.id = (int32_t *)drum_alloc((size_t)n, sizeof(int32_t));
    return state;
}

static void drum_state_free(drum_state *state)
{
    free(state->pos);
    free(state->vel);
    free(state->spin);
    free(state->sums);
    free(state->id);
    memset(state, 0, sizeof *state);
}

static void drum_copy_state(drum_state *to, const drum_state *from)
{
    size_t const n = (size_t)from->n;
    memcpy(to->pos, from->pos, 4 * n * sizeof(float));
    memcpy(to->vel, from->vel, 4 * n * sizeof(float));
    memcpy(to->spin, from->spin, 4 * n * sizeof(float));
    memcpy(to->sums, from->sums, DEM_SUMS * n * sizeof(float));
    memcpy(to->id, from->id, n * sizeof(int32_t));
}

/* xorshift64* (Vigna 2016), whose upper bits are the good ones. */
static uint64_t drum_random(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(0x2545F4914F6CDD1D);
}

static float drum_unit(uint64_t *s) { return (float)(drum_random(s) >> 40) * (1.0f / 16777216.0f); }

/* The sites of a lattice in a box around the drum. Each sphere is moved from its site by less than half of the gap of two. */
typedef struct drum_lattice { float radius, spacing, jitter, corner[3]; int32_t count[3]; } drum_lattice;

static drum_lattice drum_lattice_in(const drum_mesh *mesh, float radius, float spacing)
{
    float const low[3] = {-mesh->radius, mesh->low, -mesh->radius}, high[3] = {mesh->radius, mesh->high, mesh->radius};
    drum_lattice lattice;
    int a;
    lattice.radius = radius;
    lattice.spacing = 2 * spacing * radius;
    lattice.jitter = 0.9f * fabsf(spacing - 1) * radius;
    for (a = 0; a < 3; a++) {
        lattice.count[a] = (int32_t)((high[a] - low[a]) / lattice.spacing);
        lattice.corner[a] = 0.5f * (low[a] + high[a]) - 0.5f * lattice.spacing * (float)(lattice.count[a] - 1);
    }
    return lattice;
}

/* Fills the drum from below with n spheres; returns how many found room. */
static int32_t drum_fill(const drum_mesh *mesh, const drum_lattice *lattice, uint64_t seed, int32_t n, float *pos)
{
    nlist_mesh const surface = drum_list_mesh(mesh);
    lbvh_desc const desc = drum_tree_desc(&surface);
    lbvh tree;
    int32_t x, y, z, filled = 0;
    memset(&tree, 0, sizeof tree);
    drum_must_tree(lbvh_build(&tree, &desc, mesh->now, 0, mesh->triangles), "the tree over the drum");
    for (z = 0; z < lattice->count[2]; z++)
        for (y = 0; y < lattice->count[1]; y++)
            for (x = 0; x < lattice->count[0] && filled < n; x++) {
                int32_t const at[3] = {x, y, z};
                float *p = pos + 4 * (size_t)filled;
                int a;
                for (a = 0; a < 3; a++)
                    p[a] = lattice->corner[a] + lattice->spacing * (float)at[a] + lattice->jitter * (2 * drum_unit(&seed) - 1);
                p[3] = lattice->radius;
                if (drum_inside(&tree, &surface, mesh->high, p) && drum_clear(&tree, &surface, p, 1.01f * lattice->radius))
                    filled++;
            }
    lbvh_free(&tree);
    return filled;
}

/* Each order has the same chance (Knuth 2, 3.4.2, P). */
static void drum_shuffle(uint64_t seed, drum_state *state)
{
    int32_t i;
    for (i = state->n - 1; i > 0; i--) {
        size_t const j = (size_t)((drum_random(&seed) >> 33) % ((uint64_t)i + 1));
        float keep[4];
        memcpy(keep, state->pos + 4 * (size_t)i, sizeof keep);
        memcpy(state->pos + 4 * (size_t)i, state->pos + 4 * j, sizeof keep);
        memcpy(state->pos + 4 * j, keep, sizeof keep);
    }
}

/* Spheres at rest. */
static drum_state drum_start(const drum_options *o, const drum_mesh *mesh, float radius, float mass)
{
    drum_lattice const lattice = drum_lattice_in(mesh, radius, o->spacing);
    uint64_t seed = UINT64_C(0x9E3779B97F4A7C15) * ((uint64_t)o->seed + 1);
    drum_state state = drum_state_new(o->n);
    int32_t i, filled;
    for (i = 0; i < 16; i++) drum_random(&seed); /* the first few still look like the seed */
    filled = drum_fill(mesh, &lattice, seed, o->n, state.pos);
    if (filled < o->n)
        drum_stop(1, "only %ld of %ld spheres of radius %g found room in the drum: a smaller --fill, or more of them (--n)",
                  (long)filled, (long)o->n, (double)radius);
    if (o->shuffle) drum_shuffle(seed, &state);
    for (i = 0; i < o->n; i++) {
        state.vel[4 * (size_t)i + 3] = 1 / mass;
        state.id[i] = i;
    }
    return state;
}

/* ------------------------------------------------------------------------------------------------
   >>setup
   ------------------------------------------------------------------------------------------------ */

#define DRUM_GRAVITY 9.81
#define DRUM_DENSITY 2500.0     /* glass, kg/m^3 */
#define DRUM_PACKING 0.6        /* part of the room that spheres fill where they lie as they fell */

/* What both programs need to make a step. */
typedef struct drum_setup {
    drum_mesh mesh;
    dem_system system;          /* its arrays are set by the programs */
    float radius, mass;         /* of a sphere */
    double omega;               /* radians per second round the y axis: at the bottom, the wall goes to -x */
    ugrid_desc grid;
    nlist_desc pairs, walls;    /* sphere and sphere, sphere and triangle */
    nlist_sums pair_sums, wall_sums;
} drum_setup;

/* So stiff that two spheres overlap by softness * radius when they meet as fast as after a fall of half the drum's radius. Real
   glass is a thousand times stiffer and takes steps 30 times smaller, but moves in the same way. */
static dem_material drum_material(const drum_options *o, const drum_setup *setup)
{
    double const speed2 = DRUM_GRAVITY * (double)setup->mesh.radius, overlap = (double)o->softness * (double)setup->radius;
    return dem_material_of(0.5 * (double)setup->mass * speed2 / (overlap * overlap), 0.6, 0.3, (double)o->friction);
}

static void drum_set_system(const drum_options *o, drum_setup *setup)
{
    dem_system *s = &setup->system;
    s->n = o->n;
    s->between = s->walls = drum_material(o, setup);
    s->mesh = drum_list_mesh(&setup->mesh);
    s->mesh_motion.omega[1] = (float)setup->omega;
    s->gravity[2] = (float)-DRUM_GRAVITY;
    s->dt = o->dt > 0 ? o->dt : (float)(dem_contact_time(&s->between, 0.5 * (double)setup->mass) / 30);
    s->history_off = !o->history;
}

/* Cells as wide as the lists reach: then all partners of a sphere are in the cells around it. */
static void drum_set_grid(const drum_options *o, drum_setup *setup)
{
    ugrid_desc *desc = &setup->grid;
    const drum_mesh *mesh = &setup->mesh;
    desc->min[0] = desc->min[2] = -mesh->radius;
    desc->max[0] = desc->max[2] = mesh->radius;
    desc->min[1] = mesh->low;
    desc->max[1] = mesh->high;
    desc->cell = (2 + o->skin) * setup->radius;
    desc->method = UGRID_SORT;
    desc->inverse = o->sort_every > 0;
    desc->max_cells = INT32_MAX / 2;
}

static void drum_set_lists(const drum_options *o, drum_setup *setup)
{
    int32_t const history = o->history ? DEM_HISTORY : 0;
    setup->pairs.radius = 2 * setup->radius;
    setup->pairs.skin = o->skin * setup->radius;
    setup->pairs.layout = o->layout;
    setup->pairs.width = o->layout == NLIST_HYBRID || o->layout == NLIST_STATIC ? o->width : 0;
    setup->pairs.half = o->half;
    setup->pairs.history = history;
    setup->walls.radius = setup->radius;
    setup->walls.layout = NLIST_DYNAMIC;
    setup->walls.history = history;
    setup->pairs.deterministic = setup->walls.deterministic = o->deterministic;
    setup->pair_sums.values = setup->wall_sums.values = DEM_SUMS;
    setup->pair_sums.mode = o->mode;
    /* 2^40 units are the force of an overlap by two radii: no force is as large. Torques, which are added in the same units, are
       smaller by a radius, and still have as many digits as a float. */
    if (o->deterministic)
        setup->pair_sums.unit = setup->wall_sums.unit = 2 * (double)(setup->system.between.k_n * setup->radius) / 1099511627776.0;
}

static drum_setup drum_setup_new(const drum_options *o)
{
    drum_soup soup = drum_get_soup(o);
    drum_setup setup;
    memset(&setup, 0, sizeof setup);
    setup.mesh = drum_mesh_new(&soup);
    free(soup.corner);
    setup.radius = (float)cbrt((double)o->fill * setup.mesh.volume * DRUM_PACKING / (o->n * 4.0 / 3.0 * DRUM_PI));
    setup.mass = (float)dem_mass((double)setup.radius, DRUM_DENSITY);
    setup.omega = (double)o->rpm * 2 * DRUM_PI / 60;
    drum_set_system(o, &setup);
    drum_set_grid(o, &setup);
    drum_set_lists(o, &setup);
    return setup;
}

static double drum_angle(const drum_setup *setup, int64_t step) { return setup->omega * (double)setup->system.dt * (double)step; }

/* Does `step` begin with sorting all particle data? */
static int drum_sorts(const drum_options *o, int64_t step) { return o->sort_every > 0 && step % o->sort_every == 0; }

/* ------------------------------------------------------------------------------------------------
   >>figures: what the run ended with, found without its lists: the pairs by a grid, the walls by a tree
   ------------------------------------------------------------------------------------------------ */

typedef struct drum_figures {
    int64_t inside;         /* spheres */
    int64_t contacts;       /* pairs of spheres that touch */
    int64_t wall_contacts;  /* spheres that touch the drum */
    double overlap, deepest;/* of two spheres: on average, and the largest */
    double kinetic, turning;/* energy of motion: sums of m v^2 / 2 and of I w^2 / 2 */
    double fastest;         /* speed */
    double centre[3];       /* of mass */
    double carried;         /* by the drum at this moment, as a part of the spheres' weight: 1 on average */
    int whole;              /* is every sphere there once? */
} drum_figures;

typedef struct drum_overlaps { const float *pos; double sum, deepest; int64_t contacts; } drum_overlaps;

/* How far two spheres overlap; below 0 they are apart. */
static double drum_overlap(const float *p, const float *q)
{
    double const x = (double)q[0] - (double)p[0], y = (double)q[1] - (double)p[1], z = (double)q[2] - (double)p[2];
    return (double)p[3] + (double)q[3] - sqrt(x * x + y * y + z * z);
}

static int drum_add_overlap(void *user, int32_t i, int32_t j)
{
    drum_overlaps *all = (drum_overlaps *)user;
    double const overlap = drum_overlap(all->pos + 4 * (size_t)i, all->pos + 4 * (size_t)j);
    if (overlap <= 0) return 0;
    all->sum += overlap;
    all->deepest = overlap > all->deepest ? overlap : all->deepest;
    all->contacts++;
    return 0;
}

static void drum_measure_pairs(const drum_setup *setup, const drum_state *state, drum_figures *f)
{
    ugrid grid;
    ugrid_desc desc = setup->grid;
    drum_overlaps all = {state->pos, 0, 0, 0};
    memset(&grid, 0, sizeof grid);
    desc.method = UGRID_COUNT;
    desc.inverse = 0;
    drum_must_grid(ugrid_build(&grid, &desc, state->pos, DEM_STRIDE, state->n), "the grid for the figures");
    drum_must_grid(ugrid_each_pair(&grid, 2.0001f * setup->radius, UGRID_HALF, drum_add_overlap, &all), "counting contacts");
    ugrid_free(&grid);
    f->contacts = all.contacts;
    f->overlap = all.contacts ? all.sum / (double)all.contacts : 0;
    f->deepest = all.deepest;
}

static void drum_measure_walls(const drum_setup *setup, const drum_state *state, drum_figures *f)
{
    nlist_mesh const mesh = drum_list_mesh(&setup->mesh);
    lbvh_desc const desc = drum_tree_desc(&mesh);
    lbvh tree;
    int32_t i;
    memset(&tree, 0, sizeof tree);
    drum_must_tree(lbvh_build(&tree, &desc, setup->mesh.now, 0, setup->mesh.triangles), "the tree for the figures");
    for (i = 0; i < state->n; i++) {
        const float *p = state->pos + 4 * (size_t)i;
        f->inside += drum_inside(&tree, &mesh, setup->mesh.high, p);
        f->wall_contacts += !drum_clear(&tree, &mesh, p, p[3]);
    }
    lbvh_free(&tree);
}

static void drum_measure_motion(const drum_setup *setup, const drum_state *state, drum_figures *f)
{
    double const mass = (double)setup->mass, inertia = 0.4 * mass * (double)setup->radius * (double)setup->radius;
    double speed2 = 0, spin2 = 0, most = 0, lift = 0;
    int32_t i;
    int a;
    for (i = 0; i < state->n; i++) {
        double v2 = 0;
        for (a = 0; a < 3; a++) {
            double const v = (double)state->vel[4 * (size_t)i + (size_t)a], w = (double)state->spin[4 * (size_t)i + (size_t)a];
            f->centre[a] += (double)state->pos[4 * (size_t)i + (size_t)a] / state->n;
            v2 += v * v;
            spin2 += w * w;
        }
        speed2 += v2;
        most = v2 > most ? v2 : most;
        lift += (double)state->sums[DEM_SUMS * (size_t)i + 2];
    }
    f->kinetic = 0.5 * mass * speed2;
    f->turning = 0.5 * inertia * spin2;
    f->fastest = sqrt(most);
    f->carried = lift / (mass * DRUM_GRAVITY * state->n);
}

static int drum_is_whole(const drum_state *state)
{
    unsigned char *seen = (unsigned char *)drum_alloc((size_t)state->n, 1);
    int32_t i, whole = 1;
    for (i = 0; i < state->n; i++) {
        if (state->id[i] < 0 || state->id[i] >= state->n || seen[state->id[i]]) whole = 0;
        else seen[state->id[i]] = 1;
    }
    free(seen);
    return (int)whole;
}

/* Are all numbers numbers? A run that became unstable is told so, not measured. */
static void drum_must_be_finite(const drum_state *state)
{
    size_t k;
    for (k = 0; k < 4 * (size_t)state->n; k++)
        if (!(fabsf(state->pos[k]) < 1e6f && fabsf(state->vel[k]) < 1e12f))
            drum_stop(1, "the run became unstable: a sphere is lost in space (a smaller --dt may help)");
}

/* The mesh must have been turned to where it is now. */
static drum_figures drum_measure(const drum_setup *setup, const drum_state *state)
{
    drum_figures f;
    memset(&f, 0, sizeof f);
    drum_must_be_finite(state);
    drum_measure_pairs(setup, state, &f);
    drum_measure_walls(setup, state, &f);
    drum_measure_motion(setup, state, &f);
    f.whole = drum_is_whole(state);
    return f;
}

/* Degrees from straight down, positive to where a drum with --rpm > 0 carries the spheres. */
static double drum_slope(const drum_figures *f) { return atan2(-f->centre[0], -f->centre[2]) * 180 / DRUM_PI; }
static double drum_depth(const drum_figures *f) { return sqrt(f->centre[0] * f->centre[0] + f->centre[2] * f->centre[2]); }

/* The parts of a step, in the words of Kureck's table 6.8. */
enum {
    DRUM_MOVE, DRUM_SORT, DRUM_TRIANGLES, DRUM_GRID, DRUM_FIND_TRIANGLES, DRUM_FIND_SPHERES,
    DRUM_PUSH_TRIANGLES, DRUM_PUSH_SPHERES, DRUM_STAGES
};
static const char *const drum_stage_names[DRUM_STAGES] = {
    "integrate", "sort", "prepare triangles", "grid", "collect triangle neighbours", "collect sphere neighbours",
    "forces triangles", "forces spheres"
};

/* Average seconds of each part where it was made (a sort is not made in each step), and of a whole step. */
typedef struct drum_times { double stage[DRUM_STAGES], step; } drum_times;

static void drum_print_times(const drum_options *o, const drum_times *t)
{
    int k;
    printf("time per step %.4f ms, %.1f steps/s; its parts:\n", 1e3 * t->step, 1 / t->step);
    for (k = 0; k < DRUM_STAGES; k++) {
        if (k == DRUM_SORT && o->sort_every == 0) continue;
        printf("  %-28s %9.4f ms", drum_stage_names[k], 1e3 * t->stage[k]);
        if (k == DRUM_SORT) printf("  in one of %ld steps", (long)o->sort_every);
        printf("\n");
    }
}

static void drum_print_figures(const drum_options *o, const drum_setup *setup, const drum_figures *f, const drum_times *t,
                               int64_t entries)
{
    double const n = (double)o->n;
    printf("after %ld steps of %.3g s (%.3f turns; %ld spheres of radius %.3g mm, %ld triangles):\n", (long)o->steps,
           (double)setup->system.dt, drum_angle(setup, o->steps) / (2 * DRUM_PI), (long)o->n, 1e3 * (double)setup->radius,
           (long)setup->mesh.triangles);
    printf("  energy of motion    %.4g J, and of turning %.4g J; the fastest sphere %.3f m/s\n", f->kinetic, f->turning,
           f->fastest);
    printf("  overlaps            %.2f %% of a radius on average, %.2f %% the deepest\n", 100 * f->overlap / (double)setup->radius,
           100 * f->deepest / (double)setup->radius);
    printf("  list                %.2f entries a sphere, %.2f contacts\n", (double)entries / n, (double)f->contacts / n);
    printf("  carried by the drum %.3f of the weight\n", f->carried);
    if (o->steps) drum_print_times(o, t);
}

/* The last line, the same for both programs. */
static void drum_print_line(const drum_options *o, const drum_figures *f)
{
    printf("spheres %ld, inside %lld, contacts %lld, at the wall %lld, kinetic energy %.4g J, centre of mass %.4f m from the axis, "
           "%.1f degrees round\n",
           (long)o->n, (long long)f->inside, (long long)f->contacts, (long long)f->wall_contacts, f->kinetic, drum_depth(f),
           drum_slope(f));
}

static void drum_print_check(const drum_options *o, const drum_setup *setup, const drum_figures *f, int64_t entries)
{
    printf("spheres %ld\ninside %lld\nwhole %d\n", (long)o->n, (long long)f->inside, f->whole);
    printf("triangles %ld\nvertices %ld\nopen_edges %ld\nvolume %.9e\n", (long)setup->mesh.triangles, (long)setup->mesh.vertices,
           (long)setup->mesh.open_edges, setup->mesh.volume);
    printf("steps %ld\ndt %.9e\nangle %.9e\nradius %.9e\nmass %.9e\n", (long)o->steps, (double)setup->system.dt,
           drum_angle(setup, o->steps), (double)setup->radius, (double)setup->mass);
    printf("contacts %lld\nwall_contacts %lld\nentries %lld\n", (long long)f->contacts, (long long)f->wall_contacts,
           (long long)entries);
    printf("overlap %.9e\ndeepest %.9e\nk_n %.9e\nk_t %.9e\n", f->overlap, f->deepest, (double)setup->system.between.k_n,
           (double)setup->system.between.k_t);
    printf("kinetic_energy %.9e\nturning_energy %.9e\nfastest %.9e\n", f->kinetic, f->turning, f->fastest);
    printf("centre_x %.9e\ncentre_y %.9e\ncentre_z %.9e\n", f->centre[0], f->centre[1], f->centre[2]);
    printf("slope %.9e\ncarried %.9e\n", drum_slope(f), f->carried);
}

/* ------------------------------------------------------------------------------------------------
   >>vtk: legacy files for ParaView, binary (most significant byte first) or text. Open all of one name as a series. spheres: Glyph,
   sphere, scaled by radius; contacts: Tube, colored by force; drum: Surface, opacity 0.2
   ------------------------------------------------------------------------------------------------ */

typedef struct drum_vtk { FILE *file; int ascii; char path[1200]; } drum_vtk;

static drum_vtk drum_vtk_begin(const drum_options *o, const char *name, int32_t number, int32_t step)
{
    drum_vtk vtk;
    vtk.ascii = o->ascii;
    snprintf(vtk.path, sizeof vtk.path, "%s/%s_%04ld.vtk", o->out, name, (long)number);
    vtk.file = drum_create(vtk.path);
    fprintf(vtk.file, "# vtk DataFile Version 3.0\n%s, step %ld\n%s\nDATASET POLYDATA\n", name, (long)step,
            o->ascii ? "ASCII" : "BINARY");
    return vtk;
}

static void drum_put_big(const drum_vtk *vtk, uint32_t word)
{
    unsigned char const bytes[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16), (unsigned char)(word >> 8),
                                    (unsigned char)word};
    fwrite(bytes, 1, 4, vtk->file);
}

static void drum_put_wholes(const drum_vtk *vtk, const int32_t *values, int count)
{
    int k;
    for (k = 0; k < count; k++) {
        if (vtk->ascii) fprintf(vtk->file, "%ld%c", (long)values[k], k + 1 < count ? ' ' : '\n');
        else drum_put_big(vtk, (uint32_t)values[k]);
    }
}

static void drum_put_reals(const drum_vtk *vtk, const float *values, int count)
{
    uint32_t word;
    int k;
    for (k = 0; k < count; k++) {
        memcpy(&word, values + k, 4);
        if (vtk->ascii) fprintf(vtk->file, "%.9g%c", (double)values[k], k + 1 < count ? ' ' : '\n');
        else drum_put_big(vtk, word);
    }
}

/* The first three of four numbers of each sphere. */
static void drum_put_vectors(const drum_vtk *vtk, const float *values, int32_t n)
{
    int32_t i;
    for (i = 0; i < n; i++) drum_put_reals(vtk, values + 4 * (size_t)i, 3);
}

static void drum_put_points(const drum_vtk *vtk, const drum_state *state)
{
    fprintf(vtk->file, "POINTS %ld float\n", (long)state->n);
    drum_put_vectors(vtk, state->pos, state->n);
}

static void drum_vtk_spheres(const drum_options *o, const drum_state *state, int32_t number, int32_t step)
{
    drum_vtk const vtk = drum_vtk_begin(o, "spheres", number, step);
    int32_t i;
    drum_put_points(&vtk, state);
    fprintf(vtk.file, "\nVERTICES %ld %ld\n", (long)state->n, 2 * (long)state->n);
    for (i = 0; i < state->n; i++) {
        int32_t const cell[2] = {1, i}; /* of one point */
        drum_put_wholes(&vtk, cell, 2);
    }
    fprintf(vtk.file, "\nPOINT_DATA %ld\nVECTORS velocity float\n", (long)state->n);
    drum_put_vectors(&vtk, state->vel, state->n);
    fprintf(vtk.file, "\nVECTORS spin float\n");
    drum_put_vectors(&vtk, state->spin, state->n);
    fprintf(vtk.file, "\nSCALARS radius float 1\nLOOKUP_TABLE default\n");
    for (i = 0; i < state->n; i++) drum_put_reals(&vtk, state->pos + 4 * (size_t)i + 3, 1);
    fprintf(vtk.file, "\nSCALARS id int 1\nLOOKUP_TABLE default\n");
    for (i = 0; i < state->n; i++) drum_put_wholes(&vtk, state->id + i, 1);
    drum_close(vtk.file, vtk.path);
}

/* A contact of the list, when both touch: each pair once, also from a list that has it twice. */
typedef struct drum_link { int32_t cell[3]; float overlap, force, spring; } drum_link; /* cell: 2, i, j */

static int drum_link_of(const nlist *list, const drum_state *state, int32_t i, const nlist_each *e, drum_link *link)
{
    float *history = (float *)e->history;
    link->cell[0] = 2;
    link->cell[1] = i;
    link->cell[2] = e->id;
    link->overlap = (float)drum_overlap(state->pos + 4 * (size_t)i, state->pos + 4 * (size_t)e->id);
    link->force = history ? history[3] : 0;
    link->spring = history ? sqrtf(history[0] * history[0] + history[1] * history[1] + history[2] * history[2]) : 0;
    return link->overlap > 0 && (list->desc.half || i < e->id);
}

enum { DRUM_COUNT, DRUM_ENDS, DRUM_OVERLAP, DRUM_FORCE, DRUM_SPRING };

/* Goes through the list, and writes one thing of each contact. */
static int64_t drum_put_links(const drum_vtk *vtk, const nlist *list, const drum_state *state, int what)
{
    int64_t count = 0;
    int32_t i;
    for (i = 0; i < state->n; i++) {
        nlist_each e = nlist_of(list, i);
        drum_link link;
        while (nlist_next(&e)) {
            if (!drum_link_of(list, state, i, &e, &link)) continue;
            count++;
            if (what == DRUM_ENDS) drum_put_wholes(vtk, link.cell, 3);
            if (what == DRUM_OVERLAP) drum_put_reals(vtk, &link.overlap, 1);
            if (what == DRUM_FORCE) drum_put_reals(vtk, &link.force, 1);
            if (what == DRUM_SPRING) drum_put_reals(vtk, &link.spring, 1);
        }
    }
    return count;
}

/* The network of contacts, with what each keeps. */
static void drum_vtk_contacts(const drum_options *o, const nlist *list, const drum_state *state, int32_t number, int32_t step)
{
    static const char *const names[] = {"overlap", "force", "spring"};
    drum_vtk const vtk = drum_vtk_begin(o, "contacts", number, step);
    int64_t const count = drum_put_links(&vtk, list, state, DRUM_COUNT);
    int k;
    drum_put_points(&vtk, state);
    fprintf(vtk.file, "\nLINES %lld %lld\n", (long long)count, 3 * (long long)count);
    drum_put_links(&vtk, list, state, DRUM_ENDS);
    fprintf(vtk.file, "\nCELL_DATA %lld\n", (long long)count);
    for (k = 0; k < (o->history ? 3 : 1); k++) {
        fprintf(vtk.file, "\nSCALARS %s float 1\nLOOKUP_TABLE default\n", names[k]);
        drum_put_links(&vtk, list, state, DRUM_OVERLAP + k);
    }
    drum_close(vtk.file, vtk.path);
}

static void drum_vtk_drum(const drum_options *o, const drum_mesh *mesh, int32_t number, int32_t step)
{
    drum_vtk const vtk = drum_vtk_begin(o, "drum", number, step);
    int32_t k, cell[4] = {3, 0, 0, 0};
    fprintf(vtk.file, "POINTS %ld float\n", (long)mesh->vertices);
    for (k = 0; k < mesh->vertices; k++) drum_put_reals(&vtk, mesh->now + 3 * (size_t)k, 3);
    fprintf(vtk.file, "\nPOLYGONS %ld %ld\n", (long)mesh->triangles, 4 * (long)mesh->triangles);
    for (k = 0; k < mesh->triangles; k++) {
        memcpy(cell + 1, mesh->indices + 3 * (size_t)k, 3 * sizeof *cell);
        drum_put_wholes(&vtk, cell, 4);
    }
    drum_close(vtk.file, vtk.path);
}

/* ------------------------------------------------------------------------------------------------
   >>progress
   ------------------------------------------------------------------------------------------------ */

static double drum_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { DRUM_BAR = 30 };

typedef struct drum_progress {
    int terminal;       /* stderr is one: a bar that moves; else a line every tenth of the way */
    int tenths;         /* lines written */
    double start, last;
} drum_progress;

static drum_progress drum_progress_begin(void)
{
    drum_progress progress;
    memset(&progress, 0, sizeof progress);
    progress.terminal = isatty(2);
    progress.start = progress.last = drum_now();
    return progress;
}

static int drum_progress_due(const drum_progress *progress, int32_t step, int32_t steps)
{
    if (progress->terminal) return step == steps || drum_now() - progress->last > 0.1;
    return (int64_t)10 * step >= (int64_t)(progress->tenths + 1) * steps;
}

static void drum_progress_show(drum_progress *progress, const drum_setup *setup, int32_t step, int32_t steps)
{
    double const now = drum_now(), rate = step / (now - progress->start + 1e-9);
    char bar[DRUM_BAR + 1];
    int k;
    progress->last = now;
    progress->tenths = (int)((int64_t)10 * step / steps);
    for (k = 0; k < DRUM_BAR; k++) bar[k] = (int64_t)k * steps < (int64_t)step * DRUM_BAR ? '=' : ' ';
    bar[DRUM_BAR] = 0;
    if (progress->terminal) fprintf(stderr, "\r[%s] ", bar);
    fprintf(stderr, "step %ld of %ld, %.2f turns, %.0f steps/s, %.0f s left", (long)step, (long)steps,
            drum_angle(setup, step) / (2 * DRUM_PI), rate, (steps - step) / rate);
    fputs(progress->terminal && step < steps ? "  " : "\n", stderr);
    fflush(stderr);
}

/* ------------------------------------------------------------------------------------------------
   >>run
   ------------------------------------------------------------------------------------------------ */

/* What a program brings: how to make steps, and how to look at the spheres, and at the list of pairs, in their present order. */
typedef struct drum_engine {
    void *user;
    int32_t stride;     /* steps that are best made in one go */
    void (*advance)(void *user, int32_t steps);
    const drum_state *(*look)(void *user);
    const nlist *(*pairs)(void *user);
    int64_t (*entries)(void *user); /* of that list */
    drum_times (*times)(void *user);
} drum_engine;

#include "drum_draw.h"

/* The moments are spread evenly from the start to the end. */
static int32_t drum_frame_step(const drum_options *o, int32_t k)
{
    return o->frames < 2 ? o->steps : (int32_t)((int64_t)o->steps * k / (o->frames - 1));
}

/* The next step after `step` that is a picture, or the last. */
static int32_t drum_next_frame(const drum_options *o, int32_t step)
{
    int32_t k, next = o->steps;
    for (k = 0; k < o->frames; k++) {
        int32_t const at = drum_frame_step(o, k);
        if (at > step && at < next) next = at;
    }
    return next;
}

static void drum_write_files(const drum_options *o, const drum_setup *setup, const drum_engine *engine, int32_t number,
                             int32_t step)
{
    const drum_state *state = engine->look(engine->user);
    if (o->frames) drum_draw_frame(o, setup, state, number, step);
    if (!o->vtk) return;
    drum_vtk_spheres(o, state, number, step);
    drum_vtk_contacts(o, engine->pairs(engine->user), state, number, step);
    drum_vtk_drum(o, &setup->mesh, number, step);
}

/* All files of this step: usually one set, several where two frames are one step. */
static void drum_shoot(const drum_options *o, drum_setup *setup, const drum_engine *engine, int32_t step)
{
    int32_t k;
    drum_turn_mesh(&setup->mesh, drum_angle(setup, step));
    for (k = 0; k < o->frames; k++)
        if (drum_frame_step(o, k) == step) drum_write_files(o, setup, engine, k, step);
    if (!o->frames && o->vtk && step == o->steps) drum_write_files(o, setup, engine, 0, step);
}

/* Makes all steps, stopping for pictures and to show how far it is. */
static void drum_run(const drum_options *o, drum_setup *setup, const drum_engine *engine)
{
    drum_progress progress = drum_progress_begin();
    int32_t step = 0;
    if (o->frames || o->vtk) drum_make_folder(o->out);
    drum_shoot(o, setup, engine, 0);
    while (step < o->steps) {
        int32_t const frame = drum_next_frame(o, step);
        int32_t todo = frame - step < engine->stride ? frame - step : engine->stride;
        engine->advance(engine->user, todo);
        step += todo;
        if (step == frame) drum_shoot(o, setup, engine, step);
        if (!o->check && drum_progress_due(&progress, step, o->steps)) drum_progress_show(&progress, setup, step, o->steps);
    }
}

/* What there is to say at the end. */
static void drum_finish(const drum_options *o, drum_setup *setup, const drum_engine *engine)
{
    const drum_state *state = engine->look(engine->user);
    int64_t const entries = engine->entries(engine->user);
    drum_times const times = engine->times(engine->user);
    drum_figures f;
    drum_turn_mesh(&setup->mesh, drum_angle(setup, o->steps));
    f = drum_measure(setup, state);
    if (o->check) {
        drum_print_check(o, setup, &f, entries);
        return;
    }
    drum_print_figures(o, setup, &f, &times, entries);
    if (o->frames) printf("pictures: %s/frame_0000.png to frame_%04ld.png\n", o->out, (long)o->frames - 1);
    drum_print_line(o, &f);
}

#endif /* DRUM_H */
