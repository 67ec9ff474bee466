/* broad_phase.c - which of these spheres could touch? A uniform grid and a tree find the same
   pairs, one of them much sooner.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: when to take lbvh.h and when ugrid.h. The cells of a grid must be as wide as the
   largest sphere needs. With a few large spheres among small ones, a thousand small ones share a
   cell, and each is a candidate for all of those around it. The boxes of a tree are as large as
   what is in them. Source 004 has 3 steps/s with the grid and 45 with the tree, for a million
   spheres and 276 of ten times their radius (section 6.3.5). With spheres of one size (--ratio 1)
   the grid is no slower.

   How to run it:

       make build/broad_phase && build/broad_phase     (from the top of the repository), or
       cc -O3 examples/broad_phase/broad_phase.c -o broad_phase -lstb -lm
       ./broad_phase -n 1000000 --picture slice.png
       ./broad_phase --help

   What to look at: >>grid and >>tree below, each a build and a search. bp_tree_tests shows how a
   walk through the tree works. --sweep: sort and sweep for contrast, broad_phase_sweep.h.
   broad_phase.cu is the same program on a GPU. */

#define PROGRAM "broad_phase"
#include "../common/base.h"

#ifndef UGRID_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#endif
#ifndef LBVH_IMPLEMENTATION
#define LBVH_IMPLEMENTATION
#endif
#include "broad_phase.h"

/* -------------------------------------------------------------------------------------------------
   >>grid
   ---------------------------------------------------------------------------------------------- */

/* broad_phase.cu includes this file to compare its tree with >>tree; its grid is its own */
#ifndef __CUDACC__

typedef struct bp_grid {
    const bp_scene *scene;
    ugrid grid;
    bp_box *box;        /* [n] by id */
    bp_box *near_box;   /* [n] by place: in the order in which they are read */
    int64_t tests;      /* pairs of boxes that were compared */
} bp_grid;

static void bp_grid_build(void *user)
{
    bp_grid *g = (bp_grid *)user;
    const bp_scene *scene = g->scene;
    ugrid_desc const desc = bp_grid_desc(scene);
    lbvh_desc const spheres = bp_tree_desc();
    MUST(ugrid, ugrid_build(&g->grid, &desc, scene->sphere->p, sizeof(bp_sphere), scene->n),
         "building the grid");
    MUST(lbvh,
         lbvh_boxes(&spheres, scene->sphere->p, sizeof(bp_sphere), scene->n, g->box->min, NULL),
         "making boxes");
    MUST(ugrid, ugrid_gather(&g->grid, g->box, sizeof(bp_box), g->near_box), "moving boxes");
}

static void bp_append(bp_list *list, int32_t i, int32_t j)
{
    if (list->count < list->room) {
        list->ids[2 * list->count] = i;
        list->ids[2 * list->count + 1] = j;
    }
    list->count++;
}

/* Every sphere against the later ones of the 27 cells around it: a half walk, as each pair is
   wanted once. */
static void bp_grid_pairs(void *user, bp_list *list)
{
    bp_grid *g = (bp_grid *)user;
    float const reach = bp_reach(g->scene);
    int32_t place, k;
    g->tests = 0;
    for (place = 0; place < g->grid.n; place++) {
        bp_box const own = g->near_box[place];
        ugrid_near near = ugrid_near_half(&g->grid, place, reach);
        while (ugrid_next_range(&near)) {
            g->tests += near.end - near.begin;
            for (k = near.begin; k < near.end; k++)
                if (bp_touch(&own, &g->near_box[k]))
                    bp_append(list, ugrid_id(&g->grid, place), ugrid_id(&g->grid, k));
        }
    }
}

static bp_grid bp_grid_new(const bp_scene *scene)
{
    bp_grid g;
    memset(&g, 0, sizeof g);
    g.scene = scene;
    g.box = (bp_box *)zeros((size_t)scene->n, sizeof(bp_box));
    g.near_box = (bp_box *)zeros((size_t)scene->n, sizeof(bp_box));
    return g;
}

static void bp_grid_free(bp_grid *g)
{
    ugrid_free(&g->grid);
    free(g->box);
    free(g->near_box);
}

#endif

/* -------------------------------------------------------------------------------------------------
   >>tree
   ---------------------------------------------------------------------------------------------- */

typedef struct bp_tree {
    const bp_scene *scene;
    lbvh tree;
} bp_tree;

static void bp_tree_build(void *user)
{
    bp_tree *t = (bp_tree *)user;
    lbvh_desc const desc = bp_tree_desc();
    MUST(lbvh, lbvh_build(&t->tree, &desc, t->scene->sphere->p, sizeof(bp_sphere), t->scene->n),
         "building the tree");
}

static void bp_tree_pairs(void *user, bp_list *list)
{
    bp_tree *t = (bp_tree *)user;
    lbvh_result const result = lbvh_pairs(&t->tree, list->ids, list->room, &list->count);
    if (result != LBVH_BUFFER_TOO_SMALL) MUST(lbvh, result, "finding pairs");
}

/* How many nodes lbvh_pairs looks at. For each leaf it begins behind it, and goes on into a node
   whose box overlaps (its link is the left child), and past one whose box does not (its skip is
   what comes after all that is in it). */
static int64_t bp_tree_tests(const lbvh *tree)
{
    int64_t tests = 0;
    int32_t place;
    for (place = 0; place < tree->n; place++) {
        const lbvh_node *leaf = &tree->node[tree->first_leaf + place];
        int32_t at = leaf->skip;
        while (at >= 0) {
            const lbvh_node *node = &tree->node[at];
            tests++;
            at = !lbvh_is_leaf(tree, at) && lbvh_boxes_touch(node, leaf->min, leaf->max)
                     ? node->link
                     : node->skip;
        }
    }
    return tests;
}

#include "broad_phase_draw.h"
#include "broad_phase_sweep.h"

#ifndef __CUDACC__

int main(int argc, char **argv)
{
    bp_options const options = bp_parse(argc, argv);
    bp_scene scene = bp_begin(&options);
    bp_grid grid = bp_grid_new(&scene);
    bp_tree tree;
    bp_result by_grid, by_tree, by_sweep;
    int agree;
    memset(&tree, 0, sizeof tree);
    tree.scene = &scene;
    by_grid = bp_run(options.runs, &grid, bp_grid_build, bp_grid_pairs);
    by_grid.tests = grid.tests;
    by_tree = bp_run(options.runs, &tree, bp_tree_build, bp_tree_pairs);
    by_tree.tests = bp_tree_tests(&tree.tree);
    if (options.picture)
        bp_draw(&options, bp_picture_of(&scene, &grid.grid, &tree.tree, &by_grid, &by_tree));
    if (options.sweep) by_sweep = bp_by_sweep(&scene, options.runs);
    agree = bp_finish(&options, &scene, &by_grid, &by_tree, options.sweep ? &by_sweep : NULL);
    bp_grid_free(&grid);
    lbvh_free(&tree.tree);
    bp_scene_free(&scene);
    return agree ? 0 : 1;
}

#endif
