/* boids.h - the rules of a flock, and a step of it on one core: what boids.c, boids.cu and
   web/nearfield.c share.
   SPDX-License-Identifier: MIT OR Unlicense

   Each bird ("boid") sees those within one unit of length, and follows three rules (C. W. Reynolds,
   Flocks, Herds, and Schools, SIGGRAPH 1987): keep apart from those that are too near, fly as the
   others fly, stay near them. Besides it flees from a predator, and has a will of its own: without
   it the whole flock would sooner or later fly one way. The world is a torus: what leaves on the
   right comes back on the left.

   The sums over the others are made of whole numbers, because those do not depend on the order: so
   all methods, all walks and the GPU give the same flock, bit for bit, however long it flies.

   >>model  the world and the rules
   >>rules  what one other adds, and how one bird steers. The same text for CPU and GPU.
   >>flock  all birds, and a step. Needs ugrid.h. */

#ifndef BOIDS_H
#define BOIDS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../ugrid.h"

/* -------------------------------------------------------------------------------------------------
   >>model
   ---------------------------------------------------------------------------------------------- */

#define BOIDS_SIGHT  1.0f       /* how far a bird sees: the unit of length */
#define BOIDS_ELBOW  0.55f      /* nearer than this is too near */
#define BOIDS_FEAR   9.0f       /* how far a predator is seen */
#define BOIDS_SLOW   3.0f       /* speeds are kept between these two */
#define BOIDS_FAST   6.0f
#define BOIDS_STRONG 40.0f      /* no acceleration is larger */
#define BOIDS_TICK   (1.0f / 60)/* seconds a step */
#define BOIDS_UNIT   1024.0f    /* sums are rounded to 1/1024: room for 300 thousand others */

typedef struct boids_model {
    float box[2];               /* the world is 0 .. box[0], 0 .. box[1] */
    float apart, follow, stay;  /* how much each of the three rules counts */
    float wander;               /* and a bird's own will */
    float predator[2];
    int32_t hunted;             /* 1: there is a predator */
    uint32_t step;              /* number of the step */
} boids_model;

/* A world, 16:9, in which n birds that are spread evenly would see `near` others each. */
UGRID_FN boids_model boids_model_of(int32_t n, float near)
{
    boids_model model;
    float const height = sqrtf((float)n * 3.14159265f / near * 9 / 16);
    memset(&model, 0, sizeof model);
    model.box[1] = height > 4 ? height : 4;
    model.box[0] = model.box[1] * 16 / 9;
    model.apart = 14;
    model.follow = 3;
    model.stay = 5;
    model.wander = 6;
    return model;
}

/* -------------------------------------------------------------------------------------------------
   >>rules
   ---------------------------------------------------------------------------------------------- */

/* a * b, rounded. On a GPU a product and a sum would else become one operation, with other bits. */
UGRID_FN float boids_times(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

/* A scrambled number (the finalizer of MurmurHash3), and one from -1 to 1 made of it. */
UGRID_FN uint32_t boids_scramble(uint32_t k)
{
    k = (k ^ k >> 16) * 0x85ebca6bu;
    k = (k ^ k >> 13) * 0xc2b2ae35u;
    return k ^ k >> 16;
}

UGRID_FN float boids_random(uint32_t k)
{
    return (float)(int32_t)(boids_scramble(k) >> 8) / 8388608 - 1;
}

/* What a bird sees of the others: sums of whole numbers. */
typedef struct boids_view {
    int32_t near;                           /* how many there are */
    /* away from those too near; how all fly; the way to all */
    int32_t push[2], velocity[2], way[2];
} boids_view;

/* One other, within sight: d is the way to it, d2 the square of its length, v its velocity. */
UGRID_FN void boids_see(boids_view *view, const float d[2], float d2, const float v[2])
{
    int a;
    view->near++;
    for (a = 0; a < 2; a++) {
        view->velocity[a] += (int32_t)(v[a] * BOIDS_UNIT);
        view->way[a] += (int32_t)(d[a] * BOIDS_UNIT);
    }
    if (d2 < BOIDS_ELBOW * BOIDS_ELBOW && d2 > 0) {
        float const distance = sqrtf(d2),
                    push = (BOIDS_ELBOW - distance) / (BOIDS_ELBOW * distance) * BOIDS_UNIT;
        for (a = 0; a < 2; a++) view->push[a] -= (int32_t)(d[a] * push);
    }
}

UGRID_FN float boids_length(const float v[2])
{
    return sqrtf(boids_times(v[0], v[0]) + boids_times(v[1], v[1]));
}

/* Makes v no longer than `most`. */
UGRID_FN void boids_at_most(float v[2], float most)
{
    float const length = boids_length(v);
    if (!(length > most)) return;
    v[0] *= most / length;
    v[1] *= most / length;
}

/* The velocity of bird `id`, which is at p, from now on. */
UGRID_FN void boids_steer(const boids_model *m, const boids_view *view, uint32_t id,
                          const float p[2], float v[2])
{
    float const share = view->near ? 1 / (BOIDS_UNIT * (float)view->near) : 0;
    float change[2], away[2], distance, speed;
    int a;
    for (a = 0; a < 2; a++) {
        /* a new one each second */
        uint32_t const mood = id * 2 + (uint32_t)a + ((m->step + id * 7) >> 6) * 0x9e3779b9u;
        change[a] = boids_times(m->apart / BOIDS_UNIT, (float)view->push[a]) +
                    boids_times(m->wander, boids_random(mood));
        if (view->near)
            change[a] +=
                boids_times(m->follow, boids_times((float)view->velocity[a], share) - v[a]);
        change[a] += boids_times(m->stay, boids_times((float)view->way[a], share));
        away[a] = p[a] - m->predator[a];
        if (away[a] > m->box[a] / 2) away[a] -= m->box[a];      /* the nearest of its images */
        if (away[a] < -m->box[a] / 2) away[a] += m->box[a];
    }
    distance = boids_length(away);
    if (m->hunted && distance < BOIDS_FEAR && distance > 0)
        for (a = 0; a < 2; a++)
            change[a] +=
                boids_times(away[a] / distance, boids_times(80, 1 - distance / BOIDS_FEAR));
    boids_at_most(change, BOIDS_STRONG);
    for (a = 0; a < 2; a++) v[a] += boids_times(change[a], BOIDS_TICK);
    boids_at_most(v, BOIDS_FAST);
    speed = boids_length(v);
    if (speed < BOIDS_SLOW)
        for (a = 0; a < 2; a++) v[a] = speed > 0 ? v[a] * (BOIDS_SLOW / speed) : a ? 0 : BOIDS_SLOW;
}

/* Where it is a tick later. */
UGRID_FN void boids_move(const boids_model *m, const float v[2], float p[2])
{
    int a;
    for (a = 0; a < 2; a++) {
        p[a] += boids_times(v[a], BOIDS_TICK);
        if (p[a] < 0) p[a] += m->box[a];
        if (p[a] >= m->box[a]) p[a] -= m->box[a];
    }
}

/* -------------------------------------------------------------------------------------------------
   >>flock: birds are kept in the order of the grid: near ones lie near each other in memory
   ---------------------------------------------------------------------------------------------- */

typedef struct boids_flock {
    boids_model model;
    ugrid_desc desc;
    ugrid grid;
    int32_t n;
    float *pos, *vel;           /* [2 n] */
    int32_t *id;                /* [n] the number a bird had at the start */
    float *spare_vel;           /* for moving them */
    int32_t *spare_id;
    boids_view *view;           /* [n] what each bird sees */
    int64_t near;               /* neighbours in the last step, over all birds */
} boids_flock;

static inline void boids_free(boids_flock *flock)
{
    ugrid_free(&flock->grid);
    free(flock->pos);
    free(flock->vel);
    free(flock->id);
    free(flock->spare_vel);
    free(flock->spare_id);
    free(flock->view);
    memset(flock, 0, sizeof *flock);
}

static inline ugrid_desc boids_desc(const boids_model *model)
{
    ugrid_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.max[0] = model->box[0];
    desc.max[1] = model->box[1];
    desc.periodic[0] = desc.periodic[1] = 1;
    desc.cell = BOIDS_SIGHT;
    return desc;
}

/* Birds at random places, that fly to where they please. 0: out of memory. */
static inline int boids_start(boids_flock *flock, const boids_model *model, int32_t n,
                              uint32_t seed)
{
    size_t const size = (size_t)n;
    uint32_t k;
    memset(flock, 0, sizeof *flock);
    flock->model = *model;
    flock->desc = boids_desc(model);
    flock->n = n;
    flock->pos = (float *)malloc(2 * size * sizeof(float));
    flock->vel = (float *)malloc(2 * size * sizeof(float));
    flock->id = (int32_t *)malloc(size * sizeof(int32_t));
    flock->spare_vel = (float *)malloc(2 * size * sizeof(float));
    flock->spare_id = (int32_t *)malloc(size * sizeof(int32_t));
    flock->view = (boids_view *)malloc(size * sizeof(boids_view));
    if (!flock->pos || !flock->vel || !flock->id || !flock->spare_vel || !flock->spare_id ||
        !flock->view) {
        boids_free(flock);
        return 0;
    }
    seed = boids_scramble(seed);
    for (k = 0; k < 2 * (uint32_t)n; k++) {
        float const at = (boids_random(seed + k) + 1) / 2 * model->box[k & 1];
        flock->pos[k] = at < model->box[k & 1] ? at : 0;
        flock->vel[k] = BOIDS_FAST / 2 * boids_random(~seed - k);
        flock->id[k / 2] = (int32_t)(k / 2);
    }
    return 1;
}

/* A grid, and all that is known of the birds in its order. A cell of UGRID_FIXED that is full is
   no end: the grid says what it needs. */
static inline ugrid_result boids_build(boids_flock *flock)
{
    float *vel = flock->spare_vel;
    int32_t *id = flock->spare_id, k;
    ugrid_result result = ugrid_build(&flock->grid, &flock->desc, flock->pos, 0, flock->n);
    if (result == UGRID_CELL_FULL) {
        flock->desc.slots = flock->grid.needed_slots + flock->grid.needed_slots / 4 + 1;
        result = ugrid_build(&flock->grid, &flock->desc, flock->pos, 0, flock->n);
    }
    if (result == UGRID_OK) result = ugrid_gather(&flock->grid, flock->vel, 2 * sizeof(float), vel);
    if (result == UGRID_OK) result = ugrid_gather(&flock->grid, flock->id, sizeof(int32_t), id);
    if (result != UGRID_OK) return result;
    flock->spare_vel = flock->vel;
    flock->spare_id = flock->id;
    flock->vel = vel;
    flock->id = id;
    for (k = 0; k < flock->n; k++) {
        float p[3];
        ugrid_point(&flock->grid, k, p);
        memcpy(flock->pos + 2 * (size_t)k, p, 2 * sizeof(float));
    }
    return UGRID_OK;
}

/* The birds at two places, p and q: if they are within sight, each sees the other. The sums do
   not mind in which order that happens. */
static inline void boids_meet(boids_flock *flock, int32_t place, const float p[3], int32_t other,
                              const float q[3])
{
    float d[3], d2;
    ugrid_offset(&flock->grid, p, q, d);
    d2 = d[0] * d[0] + d[1] * d[1];
    if (d2 > BOIDS_SIGHT * BOIDS_SIGHT) return;
    boids_see(&flock->view[place], d, d2, flock->vel + 2 * (size_t)other);
    d[0] = -d[0];
    d[1] = -d[1];
    boids_see(&flock->view[other], d, d2, flock->vel + 2 * (size_t)place);
}

/* A half walk meets each pair once. SORT and COUNT return whole ranges of places: a plain loop
   over records that lie side by side. */
static inline void boids_look(boids_flock *flock)
{
    int const ranges = ugrid_has_ranges(&flock->grid);
    int32_t place, k;
    memset(flock->view, 0, (size_t)flock->n * sizeof *flock->view);
    for (place = 0; place < flock->n; place++) {
        ugrid_near near = ugrid_near_half(&flock->grid, place, BOIDS_SIGHT);
        float p[3], q[3];
        ugrid_point(&flock->grid, place, p);
        if (ranges) {
            while (ugrid_next_range(&near))
                for (k = near.begin; k < near.end; k++)
                    boids_meet(flock, place, p, k, flock->grid.record[k].x);
        } else {
            while (ugrid_next(&near)) {
                ugrid_point(&flock->grid, near.place, q);
                boids_meet(flock, place, p, near.place, q);
            }
        }
    }
    flock->near = 0;
    for (place = 0; place < flock->n; place++) flock->near += flock->view[place].near;
}

static inline void boids_fly(boids_flock *flock)
{
    int32_t k;
    for (k = 0; k < flock->n; k++) {
        float *p = flock->pos + 2 * (size_t)k, *v = flock->vel + 2 * (size_t)k;
        boids_steer(&flock->model, &flock->view[k], (uint32_t)flock->id[k], p, v);
        boids_move(&flock->model, v, p);
    }
    flock->model.step++;
}

static inline ugrid_result boids_step(boids_flock *flock)
{
    ugrid_result const result = boids_build(flock);
    if (result != UGRID_OK) return result;
    boids_look(flock);
    boids_fly(flock);
    return UGRID_OK;
}

#endif /* BOIDS_H */
