/* sah.h - a full SAH build, top-down: at every node all splits along all axes, by the order of the
   centres, and the one with the least area times number. An oracle of quality: of the tree only its
   cost is kept, as lbvh_measure gives it.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SAH_H
#define SAH_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sah_range { float min[3], max[3]; } sah_range;

typedef struct sah_job {
    const float *boxes;     /* [6 n] */
    int32_t *order[3];      /* ids by centre, along each axis */
    int32_t *later;
    double *right;          /* area times number, of what lies right of a split */
    unsigned char *is_right;
} sah_job;

typedef struct sah_key { float centre; int32_t id; } sah_key;

static int sah_compare(const void *a, const void *b)
{
    const sah_key *p = (const sah_key *)a, *q = (const sah_key *)b;
    return p->centre < q->centre ? -1 : p->centre > q->centre ? 1 : p->id - q->id;
}

static sah_range sah_nothing(void)
{
    sah_range r;
    int a;
    for (a = 0; a < 3; a++) {
        r.min[a] = 1e30f;
        r.max[a] = -1e30f;
    }
    return r;
}

static void sah_add(sah_range *r, const float *box)
{
    int a;
    for (a = 0; a < 3; a++) {
        if (box[a] < r->min[a]) r->min[a] = box[a];
        if (box[3 + a] > r->max[a]) r->max[a] = box[3 + a];
    }
}

static double sah_area(const sah_range *r)
{
    double const x = (double)r->max[0] - (double)r->min[0],
                 y = (double)r->max[1] - (double)r->min[1],
                 z = (double)r->max[2] - (double)r->min[2];
    return x * y + y * z + z * x;
}

/* The least cost of a split of first .. last-1 along one axis, and where the right part begins. */
static double sah_sweep(const sah_job *job, int axis, int32_t first, int32_t last, int32_t *split)
{
    const int32_t *order = job->order[axis];
    sah_range r = sah_nothing();
    double least = HUGE_VAL;
    int32_t k;
    for (k = last - 1; k > first; k--) {
        sah_add(&r, job->boxes + 6 * (size_t)order[k]);
        job->right[k] = sah_area(&r) * (last - k);
    }
    r = sah_nothing();
    for (k = first; k < last - 1; k++) {
        double cost;
        sah_add(&r, job->boxes + 6 * (size_t)order[k]);
        cost = sah_area(&r) * (k + 1 - first) + job->right[k + 1];
        if (cost < least) {
            least = cost;
            *split = k + 1;
        }
    }
    return least;
}

/* Parts the other orders as that of `axis` is split; each part keeps its order. */
static void sah_part(const sah_job *job, int axis, int32_t first, int32_t split, int32_t last)
{
    int32_t k;
    int a;
    for (k = first; k < last; k++) job->is_right[job->order[axis][k]] = k >= split;
    for (a = 0; a < 3; a++) {
        int32_t *order = job->order[a], kept = first, moved = 0;
        for (k = first; k < last; k++) {
            if (job->is_right[order[k]]) job->later[moved++] = order[k];
            else order[kept++] = order[k];
        }
        memcpy(order + kept, job->later, (size_t)moved * sizeof *order);
    }
}

/* The areas of the node of first .. last-1 and of all below it. */
static double sah_areas(const sah_job *job, int32_t first, int32_t last)
{
    sah_range r = sah_nothing();
    double least = HUGE_VAL;
    int32_t k, split = first + 1;
    int a, axis = 0;
    for (k = first; k < last; k++) sah_add(&r, job->boxes + 6 * (size_t)job->order[0][k]);
    if (last - first == 1) return sah_area(&r);
    for (a = 0; a < 3; a++) {
        int32_t at = first + 1;
        double const cost = sah_sweep(job, a, first, last, &at);
        if (!(cost < least)) continue;
        least = cost;
        axis = a;
        split = at;
    }
    sah_part(job, axis, first, split, last);
    return sah_area(&r) + sah_areas(job, first, split) + sah_areas(job, split, last);
}

/* lbvh_quality.sah of a full SAH build over n > 0 boxes, of one element a leaf. */
static double sah_cost(const float *boxes, int32_t n)
{
    sah_key *key = (sah_key *)bench_alloc((size_t)n * sizeof *key);
    sah_range all = sah_nothing();
    sah_job job;
    double areas;
    int32_t i;
    int a;
    job.boxes = boxes;
    job.later = (int32_t *)bench_alloc((size_t)n * sizeof *job.later);
    job.right = (double *)bench_alloc((size_t)n * sizeof *job.right);
    job.is_right = (unsigned char *)bench_alloc((size_t)n);
    for (a = 0; a < 3; a++) {
        job.order[a] = (int32_t *)bench_alloc((size_t)n * sizeof **job.order);
        for (i = 0; i < n; i++) {
            key[i].centre = boxes[6 * (size_t)i + (size_t)a] + boxes[6 * (size_t)i + 3 + (size_t)a];
            key[i].id = i;
        }
        qsort(key, (size_t)n, sizeof *key, sah_compare);
        for (i = 0; i < n; i++) job.order[a][i] = key[i].id;
    }
    for (i = 0; i < n; i++) sah_add(&all, boxes + 6 * (size_t)i);
    areas = sah_areas(&job, 0, n);
    for (a = 0; a < 3; a++) free(job.order[a]);
    free(job.later);
    free(job.right);
    free(job.is_right);
    free(key);
    return areas / sah_area(&all);
}

#endif
