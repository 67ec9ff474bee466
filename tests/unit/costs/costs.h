/* costs.h - what the tests of costs share: work as a number, memory that is short, and inputs that
   break promises. Everything is static. After testing.h.
   SPDX-License-Identifier: MIT OR Unlicense

   Work is counted, never timed. unit.mk compiles the headers and these tests so that each basic
   block that runs, and each byte that is copied, is counted (-fsanitize-coverage=trace-pc). The
   count is the same in every run. Bars are ratios: to the same call on even input, or to the same
   input of a quarter of the size. Where nothing is counted (another build), NEED_COUNT skips. */

#ifndef COSTS_H
#define COSTS_H

#ifdef COSTS_COUNTED
#define NEED_COUNT() ((void)0)
#else
typedef struct costs_work { int64_t blocks, bytes; } costs_work;
static costs_work costs_now;
#define NEED_COUNT() skip()
#endif

/* Work since the last costs_begin: blocks, and 64 bytes that were copied count as one. */
static costs_work costs_then;

WL_FN void costs_begin(void) { costs_then = costs_now; }

WL_FN double costs_end(void)
{
    return (double)(costs_now.blocks - costs_then.blocks) +
           (double)(costs_now.bytes - costs_then.bytes) / 64;
}

/* How a count grew where n grew fourfold: at most `bar` times. */
#define CHECK_GROWTH(many, few, bar) CHECK_BELOW((many) / (few), bar)

/* Prints a figure, where COSTS_SHOW is set. */
WL_FN void costs_show(const char *what, const char *input, double value)
{
    if (getenv("COSTS_SHOW")) print_message("    %-34s %-14s %.4g\n", what, input, value);
}

/* ---- memory ---- */

/* An allocator that has `limit` bytes (0: any number), and tells how often and how much it was
   asked for. */
typedef struct purse { int64_t limit, held, most, calls, given, refused; } purse;

WL_FN void *purse_alloc(size_t bytes, void *user)
{
    purse *p = (purse *)user;
    void *memory;
    p->calls++;
    if (p->limit > 0 && (int64_t)bytes > p->limit - p->held) { p->refused++; return NULL; }
    memory = malloc(bytes);
    if (!memory) abort();
    p->held += (int64_t)bytes;
    p->given += (int64_t)bytes;
    if (p->held > p->most) p->most = p->held;
    return memory;
}

WL_FN void purse_free(void *memory, size_t bytes, void *user)
{
    ((purse *)user)->held -= (int64_t)bytes;
    free(memory);
}

WL_FN OF_TESTED(_allocator) allocator_from(purse *p)
{
    OF_TESTED(_allocator) a;
    a.alloc = purse_alloc;
    a.free = purse_free;
    a.user = p;
    return a;
}

/* ---- inputs ---- */

/* Points of the unit cube, or square. */
typedef enum scene {
    EVEN,           /* spread evenly, in no order */
    SORTED,         /* a row along x, in its order */
    ONE_FAR,        /* EVEN, and the last one far from all others */
    SOME_FAR,       /* EVEN, and every 100th far away, each elsewhere */
    TWO_CLUSTERS,   /* two of EVEN, far apart */
    TEN_CLUSTERS,   /* ten, in a row */
    ONE_POINT,      /* all at one point */
    FEW_POINTS,     /* all at 20 points */
    NESTED,         /* each 64th part at half the distance from the origin of the one before */
    SCENES
} scene;

static const char *const scene_name[SCENES] = {
    "even", "sorted", "one far", "some far", "two clusters", "ten clusters", "one point",
    "20 points", "nested"};

/* Where the far ones are; clusters are nearer, since floats would merge their points. */
#define FAR_AWAY 1e9
#define CLUSTERS_APART (IS_FLOAT ? 1e6 : FAR_AWAY)

/* Point i of n. */
WL_FN void scene_point(scene s, int32_t i, int32_t n, int dim, real *p)
{
    double scale = 1, move = 0;
    int a;
    if (s == SORTED) { p[0] = (real)i / (real)n; p[1] = p[dim - 1] = 0; return; }
    if (s == ONE_POINT) { for (a = 0; a < dim; a++) p[a] = (real)0.25; return; }
    if (s == FEW_POINTS) {
        wl_random site = wl_seed((uint64_t)(i % 20) + 100);
        for (a = 0; a < dim; a++) p[a] = (real)wl_u(&site);
        return;
    }
    if (s == ONE_FAR && i == n - 1) move = FAR_AWAY;
    if (s == SOME_FAR && i % 100 == 99) scale = FAR_AWAY;
    if (s == TWO_CLUSTERS && i % 2) move = CLUSTERS_APART;
    if (s == TEN_CLUSTERS) move = CLUSTERS_APART / 64 * (i % 10) * (i % 10);
    if (s == NESTED) scale = pow(0.5, (double)(64 * (int64_t)i / n));
    for (a = 0; a < dim; a++) p[a] = (real)(scale * (double)wl_u(&dice) + move);
}

/* n points; the same in every call. */
WL_FN real *scene_points(scene s, int32_t n, int dim)
{
    real *pos = NEW(real, (size_t)n * (size_t)dim + 1);
    int32_t i;
    dice = wl_seed(11);
    for (i = 0; i < n; i++) scene_point(s, i, n, dim, pos + (size_t)i * (size_t)dim);
    return pos;
}

/* The size of an input: COSTS_TIMES=4 asks for larger ones. */
WL_FN int32_t size_of_run(int32_t size) { return environment("COSTS_TIMES", 1) * size; }

#endif /* COSTS_H */
