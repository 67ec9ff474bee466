/* scene_tree.h - a tree over drifting points, by lbvh.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_TREE_H
#define SCENE_TREE_H

/* -------------------------------------------------------------------------------------------------
   >>tree: points drift; in each step a tree is built over them. The page gets the points in Morton
   order, which is that of the leaves, and the boxes of one level. Setting: edge of the query box
   around the mouse.
   ---------------------------------------------------------------------------------------------- */

static struct tree {
    lbvh tree;
    float *pos, *vel;   /* [2 n] */
    int32_t *found;     /* [n] by element: did the query find it? */
    int32_t deepest;
} tree;

static void tree_end(void)
{
    lbvh_free(&tree.tree);
    free(tree.pos);
    free(tree.vel);
    free(tree.found);
    memset(&tree, 0, sizeof tree);
}

/* Half of them everywhere, the others in heaps. */
static const char *tree_begin(void)
{
    int32_t i, a;
    tree.pos = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    tree.vel = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    tree.found = (int32_t *)malloc((size_t)page.n * sizeof(int32_t));
    if (!tree.pos || !tree.vel || !tree.found) { tree_end(); return no_memory; }
    for (i = 0; i < page.n; i++)
        for (a = 0; a < 2; a++) {
            float const size = a ? page.high : page.wide,
                        heap = size * (boids_random((uint32_t)(i % 5 * 2 + a)) * 0.4f + 0.5f);
            float const near = web_random() + web_random() + web_random() - 1.5f;
            tree.pos[2 * i + a] = i & 1 ? size * (0.02f + 0.96f * web_random()) : heap + near;
            tree.vel[2 * i + a] = 0.012f * (web_random() - 0.5f);
        }
    page.size = 0.04f;
    return NULL;
}

/* Down from the root: the left child is the node's link, the right one comes when the left one
   and all below it are done. */
static void tree_boxes(int32_t node, int32_t level)
{
    const lbvh_node *at = &tree.tree.node[node];
    float const box[4] = {at->min[0], at->min[1], at->max[0], at->max[1]};
    if (node >= tree.tree.first_leaf) return;
    if (level > tree.deepest) tree.deepest = level;
    if (level == page.level) memcpy(page.box + 4 * (size_t)page.boxes++, box, sizeof box);
    tree_boxes(at->link, level + 1);
    tree_boxes(tree.tree.node[at->link].skip, level + 1);
}

static void tree_query(void)
{
    float const half = 0.2f + 1.3f * page.setting;
    float const box[4] = {page.mouse.x - half, page.mouse.y - half, page.mouse.x + half,
                          page.mouse.y + half};
    lbvh_overlap near = lbvh_overlap_box(&tree.tree, box);
    int32_t count = 0;
    memset(tree.found, 0, (size_t)page.n * sizeof(int32_t));
    if (page.mouse.over)
        while (lbvh_next(&near)) {
            tree.found[near.id] = 1;
            count++;
        }
    page.figure = count;
}

static const char *tree_go(void)
{
    lbvh_desc desc;
    lbvh_result result;
    int32_t k;
    for (k = 0; k < 2 * page.n; k++) {
        float const size = k & 1 ? page.high : page.wide;
        tree.pos[k] += tree.vel[k];
        if (tree.pos[k] < 0.02f * size || tree.pos[k] > 0.98f * size) tree.vel[k] = -tree.vel[k];
        if (tree.pos[k] < 0.02f * size) tree.pos[k] = 0.02f * size;
        if (tree.pos[k] > 0.98f * size) tree.pos[k] = 0.98f * size;
    }
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.kind = LBVH_POINTS;
    result = lbvh_build(&tree.tree, &desc, tree.pos, 0, page.n);
    if (result != LBVH_OK) return lbvh_result_text(result);
    tree_query();
    page.boxes = tree.deepest = 0;
    tree_boxes(0, 0);
    for (k = 0; k < page.n; k++) {
        int32_t const id = tree.tree.node[tree.tree.first_leaf + k].link;
        web_put(k, tree.pos[2 * id], tree.pos[2 * id + 1], (float)tree.found[id], 0);
    }
    return NULL;
}

#endif /* SCENE_TREE_H */
