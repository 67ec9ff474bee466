/* broad_phase.h - what broad_phase.c (serial) and broad_phase.cu (GPU) share: everything but the
   searches.
   SPDX-License-Identifier: MIT OR Unlicense

   >>options   the command line
   >>spheres   many small and a few large ones in a cube, or from a text file
   >>pairs     what a search returns, and whether two of them found the same
   >>run       a method, timed
   >>figures   what is printed

   (broad_phase_draw.h: the picture.) */

#ifndef BROAD_PHASE_H
#define BROAD_PHASE_H

#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/table.h"

#include "../../lbvh.h"
#include "../../ugrid.h"

/* -------------------------------------------------------------------------------------------------
   >>options
   ---------------------------------------------------------------------------------------------- */

typedef struct bp_options {
    int32_t n, ratio, seed, runs, level, demo, check, sweep;
    const char *read, *write, *picture;
} bp_options;

static void bp_read_options(int argc, char **argv, bp_options *o)
{
    const option_line table[] = {
        INT("-n", "N", &o->n, 1, 100000000, "small spheres (default 100000; the source: 1000000)"),
        INT("--ratio", "R", &o->ratio, 1, 50,
            "radius of the large ones, in radii of the small (default 10)"),
        INT("--seed", "N", &o->seed, 0, INT_MAX, "of the random places (default 4)"),
        INT("--runs", "N", &o->runs, 1, 1000, "times are medians of N runs (default 3)"),
        TEXT("--read", "FILE", &o->read,
             "your own spheres: a line \"x y z radius\" each, # begins a comment"),
        TEXT("--write", "FILE", &o->write, "write the spheres to such a file"),
        TEXT("--picture", "FILE", &o->picture, "draw a slice of it into a PNG"),
        INT("--level", "N", &o->level, 1, 60,
            "boxes of the tree in it: N steps below the root (default: as large as the large "
            "spheres)"),
        FLAG("--sweep", &o->sweep,
             "sort and sweep, too: at a million spheres it takes a minute (not in the picture)"),
        FLAG("--demo", &o->demo, "with a picture in build/demo; about 5 seconds"),
        FLAG("--check", &o->check, "print nothing but \"name value\" lines"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL,
                 "Which boxes overlap? A uniform grid and a tree are compared.",
                 "-n 1000000 --ratio 10 --picture slice.png");
}

static bp_options bp_parse(int argc, char **argv)
{
    bp_options o;
    memset(&o, 0, sizeof o);
    o.n = 100000;
    o.ratio = 10;
    o.seed = 4;
    o.runs = 3;
    bp_read_options(argc, argv, &o);
    if (!o.demo) return o;
    o.runs = 1;
    o.picture = "build/demo/broad_phase.png";
    bp_read_options(argc, argv, &o);
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>spheres: source 004 (H. G. Kureck, master's thesis, TU Graz 2016), section 6.3.5: a million
   spheres of radius 1 mm and 276 of 10 mm, without their places. Here each size is on the sites of
   a lattice, moved by up to half a site, in a cube of which the spheres would fill one half. With
   -n 1000000 they are those of the benchmarks (tests/common/workloads.h, bidisperse-1M).
   ---------------------------------------------------------------------------------------------- */

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

/* The least count for which count^3 * per >= many * of. */
static int32_t bp_side(int64_t many, int64_t per, int64_t of)
{
    int32_t count = 1;
    while ((int64_t)count * count * count * per < many * of) count++;
    return count;
}

/* `many` spheres on as many of the count^3 sites, of which each has the same chance (Knuth 2,
   3.4.2, S). */
static void bp_on_sites(uint64_t *s, int32_t many, int32_t count, float edge, float radius,
                        bp_sphere *sphere)
{
    int32_t const sites = count * count * count;
    float const width = edge / (float)count;
    int32_t site, left = many;
    int a;
    for (site = 0; site < sites && left > 0; site++) {
        int32_t at = site;
        if (sites > many && random_below(s, sites - site) >= left) continue;
        for (a = 0; a < 3; a++, at /= count)
            sphere->p[a] = width * ((float)(at % count) + 0.5f + (random_float(s) - 0.5f));
        sphere->radius = radius;
        sphere++;
        left--;
    }
}

static void bp_shuffle(uint64_t *s, bp_sphere *sphere, int32_t n)
{
    int32_t i;
    for (i = n - 1; i > 0; i--) {
        int32_t const j = random_below(s, i + 1);
        bp_sphere const keep = sphere[i];
        sphere[i] = sphere[j];
        sphere[j] = keep;
    }
}

/* Large spheres of `ratio` small radii: the volume of those of the source. At least one. */
static int32_t bp_large(int32_t n, int32_t ratio)
{
    int64_t const per = (int64_t)BP_MANY * ratio * ratio * ratio,
                  large = ((int64_t)n * BP_LARGE * 1000 + per / 2) / per;
    return large > 0 ? (int32_t)large : 1;
}

static bp_scene bp_mixture(const bp_options *o)
{
    float const edge = (float)BP_EDGE * (float)cbrt((double)o->n / BP_MANY);
    int32_t const large = bp_large(o->n, o->ratio);
    uint64_t s = random_seed(o->seed);
    bp_scene scene;
    int k;
    memset(&scene, 0, sizeof scene);
    for (k = 0; k < 16; k++) random_bits(&s); /* the first few still look like the seed */
    scene.n = o->n + large;
    scene.sphere = (bp_sphere *)zeros((size_t)scene.n, sizeof *scene.sphere);
    bp_on_sites(&s, o->n, bp_side(o->n, 1, 1), edge, BP_RADIUS, scene.sphere);
    bp_on_sites(&s, large, bp_side(large, BP_LARGE, BP_LARGE_SITES), edge,
                BP_RADIUS * (float)o->ratio, scene.sphere + o->n);
    bp_shuffle(&s, scene.sphere, scene.n);
    return scene;
}

static bp_scene bp_read(const char *name)
{
    table rows = table_read(name, 4, "four finite numbers x y z radius", "sphere");
    bp_scene scene;
    int32_t i;
    int a;
    memset(&scene, 0, sizeof scene);
    scene.n = rows.rows;
    scene.sphere = (bp_sphere *)zeros((size_t)scene.n, sizeof *scene.sphere);
    for (i = 0; i < scene.n; i++) {
        const double *row = table_row(&rows, i);
        for (a = 0; a < 3; a++) scene.sphere[i].p[a] = (float)row[a];
        scene.sphere[i].radius = (float)row[3];
        for (a = 0; a < 4; a++)
            if (fabs(row[a]) > 1e18 || row[3] <= 0)
                stop(1, "%s:%ld: a number is too large, or the radius is not above 0", name,
                     rows.line[i]);
    }
    table_free(&rows);
    return scene;
}

/* 9 digits bring back every float as it was. */
static void bp_write(const char *name, const bp_scene *scene)
{
    out_file const out = create_file(name);
    int32_t i;
    fprintf(out.file, "# x y z radius of %ld spheres\n", (long)scene->n);
    for (i = 0; i < scene->n; i++) {
        const bp_sphere *s = &scene->sphere[i];
        fprintf(out.file, "%.9g %.9g %.9g %.9g\n", (double)s->p[0], (double)s->p[1],
                (double)s->p[2], (double)s->radius);
    }
    close_file(&out);
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

/* How far apart the centres of two boxes that overlap can be, along each axis; a little more, as
   boxes are rounded. */
static float bp_reach(const bp_scene *scene) { return 2.0001f * scene->largest; }

/* Cells as wide as the two largest spheres need: then all partners of a sphere are in the 27
   cells around it. */
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

/* -------------------------------------------------------------------------------------------------
   >>pairs
   ---------------------------------------------------------------------------------------------- */

/* Ids i, j of each pair. Searches count on where the room ends; then it is made larger, and they
   begin again. */
typedef struct bp_list {
    int32_t *ids;       /* [2 * room] */
    int64_t room, count;
} bp_list;

/* What one method has to show. */
typedef struct bp_result {
    double build_ms, pairs_ms;
    /* grid, sweep: pairs of boxes that were compared; tree: nodes that were looked at */
    int64_t tests;
    int64_t pairs;
    uint64_t hash;      /* of the pairs, the same for every order */
} bp_result;

static void bp_make_room(bp_list *list, int64_t pairs)
{
    free(list->ids);
    list->ids = (int32_t *)zeros(2 * (size_t)pairs, sizeof *list->ids);
    list->room = pairs;
}

/* A sum does not depend on the order of the pairs; each is scrambled first (MurmurHash3's
   finalizer), or many sums would agree. */
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

static int bp_same(const bp_result *a, const bp_result *b)
{
    return a->pairs == b->pairs && a->hash == b->hash;
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* The first run finds out how much room the pairs need, and is not timed. */
static bp_result bp_run(int32_t runs, void *method, void (*build)(void *),
                        void (*search)(void *, bp_list *))
{
    double *building = (double *)zeros((size_t)runs, sizeof *building);
    double *searching = (double *)zeros((size_t)runs, sizeof *searching);
    bp_list list = {NULL, 0, 0};
    bp_result result;
    int32_t k;
    memset(&result, 0, sizeof result);
    build(method);
    search(method, &list);
    bp_make_room(&list, list.count);
    for (k = 0; k < runs; k++) {
        double const begin = 1e3 * seconds_now();
        build(method);
        building[k] = 1e3 * seconds_now() - begin;
        list.count = 0;
        search(method, &list);
        searching[k] = 1e3 * seconds_now() - begin - building[k];
    }
    result.build_ms = median(building, runs);
    result.pairs_ms = median(searching, runs);
    result.pairs = list.count;
    result.hash = bp_hash(list.ids, list.count);
    free(list.ids);
    free(building);
    free(searching);
    return result;
}

/* -------------------------------------------------------------------------------------------------
   >>figures
   ---------------------------------------------------------------------------------------------- */

static void bp_print_line(const char *name, const bp_result *r, int32_t n)
{
    printf("  %-6s %10.3f %12.3f %16lld %14.1f\n", name, r->build_ms, r->pairs_ms,
           (long long)r->tests, (double)r->tests / n);
}

static void bp_print_table(const bp_scene *scene, const bp_result *grid, const bp_result *tree,
                           const bp_result *sweep)
{
    double const grid_ms = grid->build_ms + grid->pairs_ms,
                 tree_ms = tree->build_ms + tree->pairs_ms;
    printf("%ld spheres, %ld of them with the largest radius, %g\n\n", (long)scene->n,
           (long)scene->large, (double)scene->largest);
    printf("  %-6s %10s %12s %16s %14s\n", "", "build ms", "pairs ms", "boxes tested",
           "per sphere");
    bp_print_line("grid", grid, scene->n);
    bp_print_line("tree", tree, scene->n);
    if (sweep) bp_print_line("sweep", sweep, scene->n);
    if (grid_ms >= tree_ms) printf("\n  The tree is %.1f times faster.\n", grid_ms / tree_ms);
    else printf("\n  The grid is %.1f times faster.\n", tree_ms / grid_ms);
}

/* Prints what was found; whether all methods agree. sweep: NULL without --sweep. */
static int bp_finish(const bp_options *o, const bp_scene *scene, const bp_result *grid,
                     const bp_result *tree, const bp_result *sweep)
{
    int const agree = bp_same(grid, tree) && (!sweep || bp_same(sweep, tree));
    if (o->check) {
        printf("spheres %ld\nlargest_radius %.9g\ngrid_pairs %lld\ntree_pairs %lld\n",
               (long)scene->n, (double)scene->largest, (long long)grid->pairs,
               (long long)tree->pairs);
        printf("grid_hash %016llx\ntree_hash %016llx\n", (unsigned long long)grid->hash,
               (unsigned long long)tree->hash);
        if (sweep)
            printf("sweep_pairs %lld\nsweep_hash %016llx\nsweep_tests %lld\n",
                   (long long)sweep->pairs, (unsigned long long)sweep->hash,
                   (long long)sweep->tests);
        printf("grid_tests %lld\ntree_tests %lld\nagree %d\n", (long long)grid->tests,
               (long long)tree->tests, agree);
        return agree;
    }
    bp_print_table(scene, grid, tree, sweep);
    if (o->picture) printf("  picture: %s\n", o->picture);
    printf("\nspheres %ld, ", (long)scene->n);
    printf("overlapping boxes %lld by grid, %lld by tree, ", (long long)grid->pairs,
           (long long)tree->pairs);
    printf("hash %016llx: %s\n", (unsigned long long)tree->hash,
           agree ? "the same pairs" : "THEY DIFFER");
    return agree;
}

#endif /* BROAD_PHASE_H */
