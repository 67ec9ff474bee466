/* broad_phase.h - what broad_phase.c (serial) and broad_phase.cu (GPU) share: everything but the two searches themselves.
   SPDX-License-Identifier: MIT OR Unlicense

   (broad_phase_draw.h has the picture.)

   >>options   the command line
   >>spheres   many small and a few large ones in a cube, or from a text file
   >>pairs     what a search returns, and whether two of them found the same
   >>figures   what is printed

   The same text is C99 and C++17, so memory from malloc is cast. */

#ifndef BROAD_PHASE_H
#define BROAD_PHASE_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime, mkdir */
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

#include "../lbvh.h"
#include "../ugrid.h"

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

typedef struct bp_options {
    int32_t n, ratio, seed, runs, level, demo, check, help;
    const char *read, *write, *picture;
} bp_options;

/* Ends the program with a sentence. `status`: 1 = a file, the machine or a wrong result, 2 = the command line. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static void bp_stop(int status, const char *format, ...)
{
    va_list arguments;
    fputs("broad_phase: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static void bp_grid_must(ugrid_result result, const char *what)
{
    if (result != UGRID_OK) bp_stop(1, "%s: %s", what, ugrid_result_text(result));
}

static void bp_tree_must(lbvh_result result, const char *what)
{
    if (result != LBVH_OK) bp_stop(1, "%s: %s", what, lbvh_result_text(result));
}

static void *bp_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) bp_stop(1, "out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return memory;
}

/* One line of --help, and where the value goes: one of the two pointers is set. */
typedef struct bp_flag {
    const char *name, *value, *help;    /* value NULL: a flag that takes none */
    int32_t *whole;
    const char **text;
    long least, most;
} bp_flag;

enum { BP_FLAGS = 11 };

static void bp_flag_table(bp_options *o, bp_flag table[BP_FLAGS])
{
    const bp_flag flags[BP_FLAGS] = {
        {"-n", "N", "small spheres (default 100000; the source: 1000000)", &o->n, NULL, 1, 100000000},
        {"--ratio", "R", "radius of the large ones, in radii of the small (default 10); they fill as much space for any R",
                         &o->ratio, NULL, 1, 50},
        {"--seed", "N", "of the random places (default 4)", &o->seed, NULL, 0, INT_MAX},
        {"--runs", "N", "times are medians of N runs (default 3)", &o->runs, NULL, 1, 1000},
        {"--read", "FILE", "your own spheres: a line \"x y z radius\" for each, # begins a comment", NULL, &o->read, 0, 0},
        {"--write", "FILE", "write the spheres to such a file", NULL, &o->write, 0, 0},
        {"--picture", "FILE", "draw a slice of it into a PNG", NULL, &o->picture, 0, 0},
        {"--level", "N", "which boxes of the tree are drawn: N steps below the root (default: boxes as large as the large spheres)",
                         &o->level, NULL, 1, 60},
        {"--demo", NULL, "with a picture in build/demo; about 5 seconds", &o->demo, NULL, 0, 1},
        {"--check", NULL, "print nothing but \"name value\" lines", &o->check, NULL, 0, 1},
        {"--help", NULL, "this text", &o->help, NULL, 0, 1}
    };
    memcpy(table, flags, sizeof flags);
}

static void bp_help(const bp_flag *flags, const char *program)
{
    int k;
    printf("usage: %s [options]\n\nWhich boxes overlap? A uniform grid and a tree are compared. Options:\n\n", program);
    for (k = 0; k < BP_FLAGS; k++) printf("  %-9s %-4s %s\n", flags[k].name, flags[k].value ? flags[k].value : "", flags[k].help);
    printf("\nexample: %s -n 1000000 --ratio 10 --picture slice.png\n", program);
}

static int32_t bp_number(const bp_flag *flag, const char *text)
{
    char *end;
    long value;
    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < flag->least || value > flag->most)
        bp_stop(2, "%s %s: a whole number from %ld to %ld is needed", flag->name, text, flag->least, flag->most);
    return (int32_t)value;
}

/* Stores one option; returns how many arguments it took. */
static int bp_take_flag(const bp_flag *flags, char **arguments)
{
    int k;
    for (k = 0; k < BP_FLAGS; k++)
        if (strcmp(flags[k].name, arguments[0]) == 0) break;
    if (k == BP_FLAGS) bp_stop(2, "unknown option %s (--help lists them)", arguments[0]);
    if (!flags[k].value) {
        *flags[k].whole = 1;
        return 1;
    }
    if (!arguments[1]) bp_stop(2, "%s needs a value: %s", flags[k].name, flags[k].value);
    if (flags[k].text) *flags[k].text = arguments[1];
    else *flags[k].whole = bp_number(&flags[k], arguments[1]);
    return 2;
}

/* As mkdir -p. */
static void bp_make_folder(const char *path)
{
    char part[256];
    size_t k, length = strlen(path);
    for (k = 1; k <= length && k < sizeof part; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) bp_stop(1, "%s: %s", part, strerror(errno));
    }
}

static void bp_demo(bp_options *o)
{
    bp_make_folder("build/demo");
    o->runs = 1;
    o->picture = "build/demo/broad_phase.png";
}

static bp_options bp_parse(int argc, char **argv)
{
    bp_options o;
    bp_flag flags[BP_FLAGS];
    int k, had_demo;
    memset(&o, 0, sizeof o);
    bp_flag_table(&o, flags);
    o.n = 100000;
    o.ratio = 10;
    o.seed = 4;
    o.runs = 3;
    for (k = 1; k < argc;) {
        had_demo = o.demo;
        k += bp_take_flag(flags, argv + k);
        if (o.demo && !had_demo) bp_demo(&o);
    }
    if (o.help) { bp_help(flags, argv[0]); exit(0); }
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>spheres: source 004 (H. G. Kureck, master's thesis, TU Graz 2016), section 6.3.5: a million spheres of radius 1 mm and 276 of
   10 mm. It does not say where they are. Here each size lies on the sites of a lattice, moved by up to half a site in
   each direction, in a cube of which the spheres would fill one half: as settled particles do, with some overlap. With -n 1000000
   they are those of the benchmarks (tests/common/workloads.h, bidisperse-1M).
   ------------------------------------------------------------------------------------------------ */

#define BP_RADIUS 0.001f        /* of a small sphere, in m */
#define BP_EDGE   0.2203        /* of the cube around a million small spheres */
enum { BP_MANY = 1000000, BP_LARGE = 276, BP_LARGE_SITES = 343 };

typedef struct bp_sphere { float p[3], radius; } bp_sphere;
typedef struct bp_box { float min[3], max[3]; } bp_box;

typedef struct bp_scene {
    int32_t n, large;           /* all, and those of the largest radius */
    bp_sphere *sphere;
    float least[3], most[3];    /* of the middles of all spheres */
    float largest;              /* radius */
} bp_scene;

/* xorshift64* (Vigna 2016), whose upper bits are the good ones. */
static uint64_t bp_random(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(0x2545F4914F6CDD1D);
}

static float bp_unit(uint64_t *s) { return (float)(bp_random(s) >> 40) * (1.0f / 16777216.0f); }
static int32_t bp_below(uint64_t *s, int32_t below) { return (int32_t)((bp_random(s) >> 32) * (uint32_t)below >> 32); }

/* The least count for which count^3 * per >= many * of. */
static int32_t bp_side(int64_t many, int64_t per, int64_t of)
{
    int32_t count = 1;
    while ((int64_t)count * count * count * per < many * of) count++;
    return count;
}

/* `many` spheres on as many of the count^3 sites, of which each has the same chance (Knuth 2, 3.4.2, S). */
static void bp_on_sites(uint64_t *s, int32_t many, int32_t count, float edge, float radius, bp_sphere *sphere)
{
    int32_t const sites = count * count * count;
    float const width = edge / (float)count;
    int32_t site, left = many;
    int a;
    for (site = 0; site < sites && left > 0; site++) {
        int32_t at = site;
        if (sites > many && bp_below(s, sites - site) >= left) continue;
        for (a = 0; a < 3; a++, at /= count) sphere->p[a] = width * ((float)(at % count) + 0.5f + (bp_unit(s) - 0.5f));
        sphere->radius = radius;
        sphere++;
        left--;
    }
}

static void bp_shuffle(uint64_t *s, bp_sphere *sphere, int32_t n)
{
    int32_t i;
    for (i = n - 1; i > 0; i--) {
        int32_t const j = bp_below(s, i + 1);
        bp_sphere const keep = sphere[i];
        sphere[i] = sphere[j];
        sphere[j] = keep;
    }
}

/* Large spheres of `ratio` small radii: the volume of those of the source. At least one. */
static int32_t bp_large(int32_t n, int32_t ratio)
{
    int64_t const per = (int64_t)BP_MANY * ratio * ratio * ratio, large = ((int64_t)n * BP_LARGE * 1000 + per / 2) / per;
    return large > 0 ? (int32_t)large : 1;
}

static bp_scene bp_mixture(const bp_options *o)
{
    float const edge = (float)BP_EDGE * (float)cbrt((double)o->n / BP_MANY);
    int32_t const large = bp_large(o->n, o->ratio);
    uint64_t s = UINT64_C(0x9E3779B97F4A7C15) * ((uint64_t)o->seed + 1);
    bp_scene scene;
    int k;
    memset(&scene, 0, sizeof scene);
    for (k = 0; k < 16; k++) bp_random(&s); /* the first few still look like the seed */
    scene.n = o->n + large;
    scene.sphere = (bp_sphere *)bp_alloc((size_t)scene.n, sizeof *scene.sphere);
    bp_on_sites(&s, o->n, bp_side(o->n, 1, 1), edge, BP_RADIUS, scene.sphere);
    bp_on_sites(&s, large, bp_side(large, BP_LARGE, BP_LARGE_SITES), edge, BP_RADIUS * (float)o->ratio, scene.sphere + o->n);
    bp_shuffle(&s, scene.sphere, scene.n);
    return scene;
}

/* Four finite numbers and nothing else, the last above 0? */
static int bp_parse_sphere(const char *text, bp_sphere *sphere)
{
    float v[4];
    char *end;
    int k;
    for (k = 0; k < 4; k++) {
        double const value = strtod(text, &end);
        if (end == text || !(fabs(value) <= 1e18)) return 0;
        v[k] = (float)value;
        text = end;
    }
    memcpy(sphere->p, v, sizeof sphere->p);
    sphere->radius = v[3];
    return text[strspn(text, " \t\r\n")] == 0 && v[3] > 0;
}

/* Room for one more; the array doubles when it is full. */
static void bp_grow(bp_scene *scene, int32_t *room)
{
    int32_t const more = *room ? 2 * *room : 1024;
    bp_sphere *grown;
    if (scene->n < *room) return;
    grown = scene->n < INT32_MAX / 4 ? (bp_sphere *)realloc(scene->sphere, (size_t)more * sizeof *grown) : NULL;
    if (!grown) bp_stop(1, "out of memory after %ld spheres", (long)scene->n);
    scene->sphere = grown;
    *room = more;
}

static bp_scene bp_read(const char *name)
{
    FILE *file = fopen(name, "r");
    bp_scene scene;
    char line[512];
    int32_t room = 0;
    long number = 0;
    memset(&scene, 0, sizeof scene);
    if (!file) bp_stop(1, "%s: %s", name, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        number++;
        if (!strchr(line, '\n') && !feof(file)) bp_stop(1, "%s:%ld: the line is too long", name, number);
        line[strcspn(line, "#")] = 0;
        if (line[strspn(line, " \t\r\n")] == 0) continue;
        bp_grow(&scene, &room);
        if (!bp_parse_sphere(line, &scene.sphere[scene.n]))
            bp_stop(1, "%s:%ld: four numbers x y z radius are needed, radius above 0", name, number);
        scene.n++;
    }
    if (ferror(file)) bp_stop(1, "%s: %s", name, strerror(errno));
    fclose(file);
    if (scene.n == 0) bp_stop(1, "%s: holds no sphere", name);
    return scene;
}

/* 9 digits bring back every float as it was. */
static void bp_write(const char *name, const bp_scene *scene)
{
    FILE *file = fopen(name, "w");
    int32_t i;
    if (!file) bp_stop(1, "%s: %s", name, strerror(errno));
    fprintf(file, "# x y z radius of %ld spheres\n", (long)scene->n);
    for (i = 0; i < scene->n; i++) {
        const bp_sphere *s = &scene->sphere[i];
        fprintf(file, "%.9g %.9g %.9g %.9g\n", (double)s->p[0], (double)s->p[1], (double)s->p[2], (double)s->radius);
    }
    if (ferror(file) | fclose(file)) bp_stop(1, "%s: could not be written: %s", name, strerror(errno));
}

static void bp_measure(bp_scene *scene)
{
    int32_t i;
    int a;
    for (a = 0; a < 3; a++) {
        scene->least[a] = 1e30f;
        scene->most[a] = -1e30f;
    }
    for (i = 0; i < scene->n; i++) {
        const bp_sphere *s = &scene->sphere[i];
        if (s->radius > scene->largest) {
            scene->largest = s->radius;
            scene->large = 0;
        }
        scene->large += s->radius == scene->largest;
        for (a = 0; a < 3; a++) {
            if (s->p[a] < scene->least[a]) scene->least[a] = s->p[a];
            if (s->p[a] > scene->most[a]) scene->most[a] = s->p[a];
        }
    }
}

static bp_scene bp_begin(const bp_options *o)
{
    bp_scene scene = o->read ? bp_read(o->read) : bp_mixture(o);
    bp_measure(&scene);
    if (o->write) bp_write(o->write, &scene);
    return scene;
}

static void bp_scene_free(bp_scene *scene)
{
    free(scene->sphere);
    memset(scene, 0, sizeof *scene);
}

/* Both methods get the spheres as they are: 16 bytes each, centre and radius. */
static lbvh_desc bp_tree_desc(void)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_SPHERES;
    return desc;
}

/* How far apart the centres of two boxes that overlap can be, along each axis; a little more, as boxes are rounded. */
static float bp_reach(const bp_scene *scene) { return 2.0001f * scene->largest; }

/* Cells as wide as the two largest spheres need: then all partners of a sphere are in the 27 cells around it. */
static ugrid_desc bp_grid_desc(const bp_scene *scene)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.cell = bp_reach(scene);
    desc.method = UGRID_SORT;
    return desc;
}

/* Do two closed boxes share a point? */
UGRID_FN int bp_touch(const bp_box *a, const bp_box *b)
{
    return (a->min[0] <= b->max[0]) & (a->min[1] <= b->max[1]) & (a->min[2] <= b->max[2]) &
           (b->min[0] <= a->max[0]) & (b->min[1] <= a->max[1]) & (b->min[2] <= a->max[2]);
}

/* ------------------------------------------------------------------------------------------------
   >>pairs
   ------------------------------------------------------------------------------------------------ */

/* Ids i, j of each pair. Searches count on where the room ends; then it is made larger, and they begin again. */
typedef struct bp_list {
    int32_t *ids;       /* [2 * room] */
    int64_t room, count;
} bp_list;

/* What one method has to show. */
typedef struct bp_result {
    double build_ms, pairs_ms;
    int64_t tests;      /* grid: candidates, pairs of boxes that were compared; tree: nodes that were looked at */
    int64_t pairs;
    uint64_t hash;      /* of the pairs, the same for every order */
} bp_result;

static void bp_make_room(bp_list *list, int64_t pairs)
{
    free(list->ids);
    list->ids = (int32_t *)bp_alloc(2 * (size_t)pairs, sizeof *list->ids);
    list->room = pairs;
}

/* A sum does not depend on the order of the pairs; each is scrambled first (MurmurHash3's finalizer), or many sums would agree. */
static uint64_t bp_hash(const int32_t *ids, int64_t pairs)
{
    uint64_t sum = 0;
    int64_t k;
    for (k = 0; k < pairs; k++) {
        uint64_t const i = (uint64_t)ids[2 * k], j = (uint64_t)ids[2 * k + 1];
        uint64_t key = i < j ? i << 32 | j : j << 32 | i;
        key = (key ^ key >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
        key = (key ^ key >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
        sum += key ^ key >> 33;
    }
    return sum;
}

static int bp_same(const bp_result *a, const bp_result *b) { return a->pairs == b->pairs && a->hash == b->hash; }

static double bp_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int bp_compare(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bp_median(double *samples, int32_t count)
{
    qsort(samples, (size_t)count, sizeof *samples, bp_compare);
    return samples[count / 2];
}

/* ------------------------------------------------------------------------------------------------
   >>figures
   ------------------------------------------------------------------------------------------------ */

static void bp_print_line(const char *name, const bp_result *r, int32_t n)
{
    printf("  %-6s %10.3f %12.3f %16lld %14.1f\n", name, r->build_ms, r->pairs_ms, (long long)r->tests, (double)r->tests / n);
}

static void bp_print_table(const bp_scene *scene, const bp_result *grid, const bp_result *tree)
{
    double const grid_ms = grid->build_ms + grid->pairs_ms, tree_ms = tree->build_ms + tree->pairs_ms;
    printf("%ld spheres, %ld of them with the largest radius, %g\n\n", (long)scene->n, (long)scene->large, (double)scene->largest);
    printf("  %-6s %10s %12s %16s %14s\n", "", "build ms", "pairs ms", "boxes tested", "per sphere");
    bp_print_line("grid", grid, scene->n);
    bp_print_line("tree", tree, scene->n);
    if (grid_ms >= tree_ms) printf("\n  The tree is %.1f times faster.\n", grid_ms / tree_ms);
    else printf("\n  The grid is %.1f times faster.\n", tree_ms / grid_ms);
}

/* Prints what was found; whether both methods agree. */
static int bp_finish(const bp_options *o, const bp_scene *scene, const bp_result *grid, const bp_result *tree)
{
    int const agree = bp_same(grid, tree);
    if (o->check) {
        printf("spheres %ld\nlargest_radius %.9g\ngrid_pairs %lld\ntree_pairs %lld\n", (long)scene->n, (double)scene->largest,
               (long long)grid->pairs, (long long)tree->pairs);
        printf("grid_hash %016llx\ntree_hash %016llx\n", (unsigned long long)grid->hash, (unsigned long long)tree->hash);
        printf("grid_tests %lld\ntree_tests %lld\nagree %d\n", (long long)grid->tests, (long long)tree->tests, agree);
        return agree;
    }
    bp_print_table(scene, grid, tree);
    if (o->picture) printf("  picture: %s\n", o->picture);
    printf("\nspheres %ld, ", (long)scene->n);
    printf("overlapping boxes %lld by grid, %lld by tree, ", (long long)grid->pairs, (long long)tree->pairs);
    printf("hash %016llx: %s\n", (unsigned long long)tree->hash, agree ? "the same pairs" : "THEY DIFFER");
    return agree;
}

#endif /* BROAD_PHASE_H */
