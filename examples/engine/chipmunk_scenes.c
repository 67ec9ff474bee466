/* chipmunk_scenes.c - lbvh.h as the broad phase of Chipmunk2D, beside Chipmunk's own three, in
   seven scenes.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O3 -I. examples/engine/chipmunk_scenes.c -o chipmunk_scenes -lchipmunk -lm &&
       ./chipmunk_scenes
       ./chipmunk_scenes --steps 20 --warm 5 --scene 0         (Debian: libchipmunk-dev)
       ./chipmunk_scenes --steps 100 --indices 2               BBTree and lbvh alone

   Broad phase: all four indices follow the same simulation. In each step they take in the boxes
   that the step left, and report
   pairs to the same function, in turns; their pairs are compared in every step. (Sweep1D misses
   pairs in a few first steps.) Whole step: four spaces, one with each index, step
   in turns. Printed: the median time of a step in ms, and the median of the ratios to BBTree step
   by step, of this thread's time. */

#define PROGRAM "chipmunk_scenes"
#include "examples/common/options.h"

#define LBVH_STATIC
#define LBVH_IMPLEMENTATION
#include "chipmunk_lbvh.h"

enum { INDICES = 4, MOST_STEPS = 2000, BODIES = 21000 };
static int32_t indices = INDICES; /* of these so many are compared */
static int32_t warm_steps = -1; /* before those measured; -1: as the scene says */
static const char *const index_names[INDICES] = {"BBTree", "lbvh", "SpaceHash", "Sweep1D"};

static double now_ms(void) { return 1e3 * processor_seconds(); }

/* ---- the scenes: a space, its shapes, and what is replaced in every step ---- */

typedef struct scene {
    const char *name;
    double cell; /* for the spatial hash: about the size of a shape */
    int warm;    /* steps before the measured ones */
    int boxes, circles, statics, replaced;
    double small, large; /* radii, */
    int giants;          /* so many of which are `giant` */
    double giant, speed, gravity;
} scene;

static const scene scenes[] = {
    {"pyramid of 990 boxes", 20, 60, 44, 0, 0, 0, 0, 0, 0, 0, 0, 100},
    {"5000 falling circles", 6, 60, 0, 5000, 0, 0, 3, 3, 0, 0, 20, 100},
    {"20000 of mixed size", 8, 30, 0, 20000, 0, 0, 2, 6, 0, 0, 20, 100},
    {"5000 fast circles", 6, 30, 0, 5000, 0, 0, 3, 3, 0, 0, 400, 0},
    {"5000 of 2 to 4, 40 giants", 8, 60, 0, 5000, 0, 0, 2, 4, 40, 40, 20, 100},
    {"500 over 20000 statics", 10, 60, 0, 500, 20000, 10, 3, 5, 0, 0, 40, 100},
    {"200 circles", 6, 60, 0, 200, 0, 0, 3, 3, 0, 0, 20, 100}};

typedef struct stage {
    const scene *what;
    cpSpace *space;
    cpShape *shape[BODIES];
    cpHashValue number[BODIES];
    int shapes, next_static;
    uint32_t dice;
} stage;

static double dice(stage *s)
{
    s->dice = s->dice * 1664525u + 1013904223u;
    return (double)(s->dice >> 8) / (double)(1u << 24);
}

static cpShape *keep(stage *s, cpShape *shape)
{
    cpShapeSetFriction(shape, 0.6);
    cpSpaceAddShape(s->space, shape);
    s->number[s->shapes] = shape->hashid;
    return s->shape[s->shapes++] = shape;
}

static int warm_of(const scene *what) { return warm_steps < 0 ? what->warm : warm_steps; }

static double side_of(const scene *what)
{
    double const mean = (what->small + what->large) / 2 + 1;
    return sqrt((double)(what->circles + what->statics)) * mean * 2.6;
}

static void add_circle(stage *s, double radius, double x, double y)
{
    cpBody *body =
        cpSpaceAddBody(s->space, cpBodyNew(radius * radius,
                                           cpMomentForCircle(radius * radius, 0, radius, cpvzero)));
    double const speed = s->what->speed;
    cpBodySetPosition(body, cpv(x, y));
    cpBodySetVelocity(body, cpv(speed * (2 * dice(s) - 1), speed * (2 * dice(s) - 1)));
    keep(s, cpCircleShapeNew(body, radius, cpvzero));
}

static void add_pyramid(stage *s, int rows)
{
    int row, k;
    for (row = 0; row < rows; row++)
        for (k = 0; k < rows - row; k++) {
            cpBody *body = cpSpaceAddBody(s->space, cpBodyNew(1, cpMomentForBox(1, 20, 20)));
            cpBodySetPosition(body, cpv(21 * (k - 0.5 * (rows - row)), 10 + 20.0 * row));
            keep(s, cpBoxShapeNew(body, 20, 20, 0.5));
        }
}

static void add_wall(stage *s, double ax, double ay, double bx, double by)
{
    keep(s, cpSegmentShapeNew(cpSpaceGetStaticBody(s->space), cpv(ax, ay), cpv(bx, by), 2));
}

static cpShape *new_static(stage *s, double side)
{
    double const x = side * (dice(s) - 0.5), y = side * dice(s) * 0.9, r = 1 + 2 * dice(s);
    return cpCircleShapeNew(cpSpaceGetStaticBody(s->space), r, cpv(x, y));
}

static void fill(stage *s)
{
    const scene *what = s->what;
    double const side = what->boxes ? 1000 : side_of(what);
    int k;
    cpSpaceSetGravity(s->space, cpv(0, -what->gravity));
    add_wall(s, -side, 0, side, 0);
    add_wall(s, -side / 2, 0, -side / 2, 2 * side);
    add_wall(s, side / 2, 0, side / 2, 2 * side);
    add_wall(s, -side, side * 1.1, side, side * 1.1);
    s->next_static = s->shapes;
    for (k = 0; k < what->statics; k++) keep(s, new_static(s, side));
    add_pyramid(s, what->boxes);
    for (k = 0; k < what->circles; k++) {
        double const radius =
            k < what->giants ? what->giant : what->small + (what->large - what->small) * dice(s);
        add_circle(s, radius, (side - 2 * radius - 8) * (dice(s) - 0.5),
                   radius + 4 + (side - 2 * radius) * dice(s));
    }
}

/* Replaces static shapes, each by another one in the same entry of shape[]. */
static void replace(stage *s, void (*leaves)(void *user, int k), void (*comes)(void *user, int k),
                    void *user)
{
    int const first = 4, statics = s->what->statics;
    int k;
    for (k = 0; k < s->what->replaced; k++) {
        int const at = s->next_static;
        s->next_static = first + (at - first + 1) % statics;
        if (leaves) leaves(user, at);
        cpSpaceRemoveShape(s->space, s->shape[at]);
        cpShapeFree(s->shape[at]);
        s->shape[at] = cpSpaceAddShape(s->space, new_static(s, side_of(s->what)));
        s->number[at] = s->shape[at]->hashid;
        if (comes) comes(user, at);
    }
}

/* ---- the indices ---- */

static cpVect velocity_of(cpShape *shape) { return shape->body->v; }

static cpSpatialIndex *new_index(int which, const scene *what, cpSpatialIndex **statics)
{
    cpSpatialIndexBBFunc const bb = (cpSpatialIndexBBFunc)cpShapeGetBB;
    int const cells = 10 * (what->circles + what->statics + 1000);
    cpSpatialIndex *index;
    if (which == 1) return chipmunk_lbvh(statics);
    if (which == 2) {
        *statics = cpSpaceHashNew(what->cell, cells, bb, NULL);
        return cpSpaceHashNew(what->cell, cells, bb, *statics);
    }
    if (which == 3) {
        *statics = cpSweep1DNew(bb, NULL);
        return cpSweep1DNew(bb, *statics);
    }
    *statics = cpBBTreeNew(bb, NULL);
    index = cpBBTreeNew(bb, *statics);
    cpBBTreeSetVelocityFunc(index, (cpBBTreeVelocityFunc)velocity_of);
    return index;
}

static stage *new_stage(const scene *what, int which, int sleeps)
{
    stage *s = (stage *)calloc(1, sizeof *s);
    chip_must(s != NULL);
    s->what = what;
    s->dice = 7;
    s->space = cpSpaceNew();
    cpSpatialIndexFree(s->space->staticShapes);
    cpSpatialIndexFree(s->space->dynamicShapes);
    s->space->dynamicShapes = new_index(which, what, &s->space->staticShapes);
    cpSpaceSetSleepTimeThreshold(s->space, sleeps ? 0.5 : (cpFloat)INFINITY);
    fill(s);
    return s;
}

static void free_stage(stage *s)
{
    int k;
    for (k = 0; k < s->shapes; k++) {
        cpBody *body = s->shape[k]->body;
        cpSpaceRemoveShape(s->space, s->shape[k]);
        cpShapeFree(s->shape[k]);
        if (cpBodyGetType(body) != CP_BODY_TYPE_STATIC) {
            cpSpaceRemoveBody(s->space, body);
            cpBodyFree(body);
        }
    }
    cpSpaceFree(s->space);
    free(s);
}

/* ---- broad phase: four indices follow one simulation ---- */

typedef struct follower {
    stage *leader;
    cpSpatialIndex *index[INDICES], *statics[INDICES];
    unsigned char resting[BODIES];
    double spent[INDICES];
    uint64_t sum[INDICES];
    int pairs[INDICES], different[INDICES]; /* pairs; steps with other pairs than BBTree's */
    int now;
} follower;

static cpCollisionID count_pair(void *a, void *b, cpCollisionID id, void *user)
{
    follower *f = (follower *)user;
    f->pairs[f->now] += cpBBIntersects(((cpShape *)a)->bb, ((cpShape *)b)->bb);
    return id;
}

/* A sum over the set of pairs that no order changes. */
static cpCollisionID sum_pair(void *a, void *b, cpCollisionID id, void *user)
{
    follower *f = (follower *)user;
    uint64_t const l = (uint64_t)((cpShape *)a)->hashid, r = (uint64_t)((cpShape *)b)->hashid;
    uint64_t mix = (l < r ? l << 32 | r : r << 32 | l) * 0x9E3779B97F4A7C15ull;
    if (!cpBBIntersects(((cpShape *)a)->bb, ((cpShape *)b)->bb)) return id;
    mix = (mix ^ mix >> 29) * 0xBF58476D1CE4E5B9ull;
    f->sum[f->now] += mix ^ mix >> 32;
    return id;
}

static cpSpatialIndex *home_of(const follower *f, int which, int k)
{
    return f->resting[k] ? f->statics[which] : f->index[which];
}

/* Inserts shape k into each index, or removes it. */
static void change(void *user, int k,
                   void (*call)(cpSpatialIndex *index, void *shape, cpHashValue number))
{
    follower *f = (follower *)user;
    const stage *s = f->leader;
    int which;
    for (which = 0; which < indices; which++) {
        double const begin = now_ms();
        call(home_of(f, which, k), s->shape[k], s->number[k]);
        f->spent[which] += now_ms() - begin;
    }
}

static void put(void *user, int k) { change(user, k, cpSpatialIndexInsert); }
static void take(void *user, int k) { change(user, k, cpSpatialIndexRemove); }

static int rests(const cpShape *shape)
{
    return cpBodyGetType(shape->body) == CP_BODY_TYPE_STATIC || cpBodyIsSleeping(shape->body);
}

/* Reads what the engine has just written before it calls the index: boxes and velocities. */
static void touch_shapes(const stage *s)
{
    double volatile sum = 0;
    int k;
    for (k = 0; k < s->shapes; k++)
        if (cpBodyGetType(s->shape[k]->body) != CP_BODY_TYPE_STATIC)
            sum = sum + s->shape[k]->bb.l + s->shape[k]->body->v.x;
    (void)sum;
}

/* One step of the simulation, then of the indices, each one first in its turn. */
static void follow(follower *f)
{
    stage *s = f->leader;
    int k, which;
    memset(f->spent, 0, sizeof f->spent);
    memset(f->sum, 0, sizeof f->sum);
    memset(f->pairs, 0, sizeof f->pairs);
    replace(s, take, put, f);
    cpSpaceStep(s->space, 1.0 / 60);
    for (k = 0; k < s->shapes; k++)
        if (rests(s->shape[k]) != f->resting[k]) {
            take(f, k);
            f->resting[k] = !f->resting[k];
            put(f, k);
        }
    for (k = 0; k < indices; k++) {
        double begin;
        which = f->now = (int)((s->space->stamp + (cpTimestamp)k) % (cpTimestamp)indices);
        touch_shapes(s);
        begin = now_ms();
        cpSpatialIndexReindexQuery(f->index[which], count_pair, f);
        f->spent[which] += now_ms() - begin;
        cpSpatialIndexReindexQuery(f->index[which], sum_pair, f);
    }
    for (which = 1; which < indices; which++) f->different[which] += f->sum[which] != f->sum[0];
}

static void new_follower(follower *f, const scene *what, int sleeps)
{
    int which, k;
    memset(f, 0, sizeof *f);
    f->leader = new_stage(what, 0, sleeps);
    for (which = 0; which < indices; which++)
        f->index[which] = new_index(which, what, &f->statics[which]);
    for (k = 0; k < f->leader->shapes; k++) {
        f->resting[k] = (unsigned char)rests(f->leader->shape[k]);
        put(f, k);
    }
}

static void free_follower(follower *f)
{
    int which;
    for (which = 0; which < indices; which++) {
        cpSpatialIndexFree(f->statics[which]);
        cpSpatialIndexFree(f->index[which]);
    }
    free_stage(f->leader);
}

/* ---- tables ---- */

typedef struct table {
    double ms[INDICES][MOST_STEPS], ratio[INDICES][MOST_STEPS];
} table;

static void note(table *t, int step, const double spent[INDICES])
{
    int which;
    for (which = 0; which < indices; which++) {
        t->ms[which][step] = spent[which];
        t->ratio[which][step] = spent[which] / spent[0];
    }
}

static void print_row(const char *kind, table *t, int steps)
{
    int which;
    printf("  %-12s", kind);
    for (which = 0; which < indices; which++)
        printf("  %s %8.3f ms %5.2f", index_names[which], median(t->ms[which], steps),
               median(t->ratio[which], steps));
    printf("\n");
}

static int broad_phase(const scene *what, int sleeps, int steps, table *t)
{
    static follower f;
    int step, which;
    new_follower(&f, what, sleeps);
    for (step = -warm_of(what); step < steps; step++) {
        follow(&f);
        if (step >= 0) note(t, step, f.spent);
    }
    print_row("broad phase", t, steps);
    printf("  %d pairs in the last step; steps with other pairs than BBTree:", f.pairs[0]);
    for (which = 1; which < indices; which++)
        printf(" %s %d", index_names[which], f.different[which]);
    printf("\n");
    free_follower(&f);
    return f.different[1] == 0;
}

static void whole_step(const scene *what, int sleeps, int steps, table *t)
{
    stage *s[INDICES];
    double spent[INDICES];
    int step, which;
    for (which = 0; which < indices; which++) s[which] = new_stage(what, which, sleeps);
    for (step = -warm_of(what); step < steps; step++) {
        for (which = 0; which < indices; which++) {
            double const begin = now_ms();
            replace(s[which], NULL, NULL, NULL);
            cpSpaceStep(s[which]->space, 1.0 / 60);
            spent[which] = now_ms() - begin;
        }
        if (step >= 0) note(t, step, spent);
    }
    print_row("whole step", t, steps);
    for (which = 0; which < indices; which++) free_stage(s[which]);
}

int main(int argc, char **argv)
{
    static table t;
    int const count = (int)(sizeof scenes / sizeof *scenes);
    int32_t steps = 60, only = -1;
    option_line const options[] = {
        INT("--steps", "N", &steps, 1, MOST_STEPS, "steps that are measured (default 60)"),
        INT("--warm", "N", &warm_steps, 0, 1e6, "steps before them (default: the scene's own)"),
        INT("--indices", "N", &indices, 2, INDICES,
            "the first N of BBTree, lbvh, SpaceHash, Sweep1D (default: all)"),
        INT("--scene", "K", &only, 0, count - 1, "this one (default: all)"),
        OPTIONS_END};
    int k, sleeps, same = 1;
    options_read(argc, argv, options, NULL, "lbvh.h as the broad phase of Chipmunk2D.", NULL);
    for (k = 0; k < count; k++)
        for (sleeps = 0; sleeps < 2 && (only < 0 || only == k); sleeps++) {
            printf("%d: %s, sleeping %s\n", k, scenes[k].name, sleeps ? "on" : "off");
            same &= broad_phase(&scenes[k], sleeps, steps, &t);
            whole_step(&scenes[k], sleeps, steps, &t);
            fflush(stdout);
        }
    printf("lbvh found the pairs of BBTree in every step of all scenes: %s\n", same ? "yes" : "no");
    return same ? 0 : 1;
}
