/* broad_phase_sweep.h - sort and sweep, for broad_phase.c: the contrast of source 003.
   SPDX-License-Identifier: MIT OR Unlicense

   Boxes are sorted by where they begin along one axis. A box can overlap those that begin before
   it ends, and these follow it without a gap. It needs neither cells nor a tree, but most of what
   it meets is far away along the other axes: in a cube of n boxes of one size, O(n^(5/3)) tests.
   Source: T. Karras, "Thinking Parallel, Part I", NVIDIA developer blog, which goes on to grids and
   trees. */

#ifndef BROAD_PHASE_SWEEP_H
#define BROAD_PHASE_SWEEP_H

typedef struct bp_begin_at { float least; int32_t id; } bp_begin_at;

typedef struct bp_sweep {
    const bp_scene *scene;
    int axis;               /* along which the spheres reach furthest */
    bp_box *box, *sorted;   /* [n] by id; in the order in which they begin */
    bp_begin_at *order;     /* [n] */
    int64_t tests;          /* boxes that were compared */
} bp_sweep;

static int bp_longest_axis(const bp_scene *scene)
{
    int a, longest = 0;
    for (a = 1; a < 3; a++)
        if (scene->most[a] - scene->least[a] > scene->most[longest] - scene->least[longest])
            longest = a;
    return longest;
}

#ifndef __CUDACC__ /* broad_phase_sweep_gpu.h has its own */

static int bp_earlier(const void *left, const void *right)
{
    const bp_begin_at *a = (const bp_begin_at *)left, *b = (const bp_begin_at *)right;
    if (a->least != b->least) return a->least < b->least ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static void bp_sweep_build(void *user)
{
    bp_sweep *s = (bp_sweep *)user;
    const bp_scene *scene = s->scene;
    lbvh_desc const spheres = bp_tree_desc();
    int32_t k;
    MUST(lbvh,
         lbvh_boxes(&spheres, scene->sphere->p, sizeof(bp_sphere), scene->n, s->box->min, NULL),
         "making boxes");
    for (k = 0; k < scene->n; k++) {
        s->order[k].least = s->box[k].min[s->axis];
        s->order[k].id = k;
    }
    qsort(s->order, (size_t)scene->n, sizeof *s->order, bp_earlier);
    for (k = 0; k < scene->n; k++) s->sorted[k] = s->box[s->order[k].id];
}

static void bp_sweep_pairs(void *user, bp_list *list)
{
    bp_sweep *s = (bp_sweep *)user;
    int32_t i, j;
    s->tests = 0;
    for (i = 0; i < s->scene->n; i++) {
        bp_box const own = s->sorted[i];
        for (j = i + 1; j < s->scene->n && s->order[j].least <= own.max[s->axis]; j++)
            if (bp_touch(&own, &s->sorted[j])) bp_append(list, s->order[i].id, s->order[j].id);
        s->tests += j - i - 1;
    }
}

static bp_result bp_by_sweep(const bp_scene *scene, int32_t runs)
{
    bp_sweep s;
    bp_result result;
    memset(&s, 0, sizeof s);
    s.scene = scene;
    s.axis = bp_longest_axis(scene);
    s.box = (bp_box *)zeros((size_t)scene->n, sizeof *s.box);
    s.sorted = (bp_box *)zeros((size_t)scene->n, sizeof *s.sorted);
    s.order = (bp_begin_at *)zeros((size_t)scene->n, sizeof *s.order);
    result = bp_run(runs, &s, bp_sweep_build, bp_sweep_pairs);
    result.tests = s.tests;
    free(s.box);
    free(s.sorted);
    free(s.order);
    return result;
}

#endif

#endif /* BROAD_PHASE_SWEEP_H */
