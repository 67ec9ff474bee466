/* how_tree.h - the arrays of a tree and a walk through it, by lbvh.h, for how.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef HOW_TREE_H
#define HOW_TREE_H

enum { TREE_BITS = 30, TREE_NODES = 2 * HOW_MOST };

/* By node, inner nodes first, then the leaves by place. */
static struct tree_steps {
    lbvh tree;
    int32_t id[HOW_MOST], code[HOW_MOST], prefix[HOW_MOST + 1]; /* by place; prefix: by border */
    int32_t left[TREE_NODES], right[TREE_NODES];    /* children; -1: a leaf */
    int32_t first[TREE_NODES], last[TREE_NODES];    /* places below it */
    int32_t skip[TREE_NODES];
    float box[4 * TREE_NODES];
    int32_t visited[TREE_NODES], met[TREE_NODES];   /* the nodes of the walk, in its order */
    int32_t found[HOW_MOST];                        /* ids, by lbvh_next */
} tree_steps;

static void tree_read_node(int32_t at)
{
    struct tree_steps *s = &tree_steps;
    const lbvh_node *node = &s->tree.node[at];
    int const leaf = lbvh_is_leaf(&s->tree, at);
    s->left[at] = leaf ? -1 : node->link;
    s->right[at] = leaf ? -1 : lbvh_right_child(&s->tree, node);
    s->last[at] = lbvh_last_place(&s->tree, node);
    s->skip[at] = node->skip;
    s->box[4 * at] = node->min[0];
    s->box[4 * at + 1] = node->min[1];
    s->box[4 * at + 2] = node->max[0];
    s->box[4 * at + 3] = node->max[1];
}

/* A left child begins where its parent does, a right one behind the split. */
static void tree_read(void)
{
    struct tree_steps *s = &tree_steps;
    const lbvh *tree = &s->tree;
    int32_t k, at;
    for (at = 0; at < 2 * tree->n - 1; at++) tree_read_node(at);
    s->first[lbvh_root(tree)] = 0;
    for (at = lbvh_root(tree); at >= 0; at = s->left[at] < 0 ? s->skip[at] : s->left[at]) {
        if (s->left[at] < 0) continue;
        s->first[s->left[at]] = s->first[at];
        s->first[s->right[at]] = lbvh_split_place(tree, &tree->node[at]) + 1;
    }
    for (k = 0; k <= tree->n; k++) s->prefix[k] = tree->prefix[k];
    for (k = 0; k < tree->n; k++) {
        s->id[k] = tree->node[tree->first_leaf + k].link;
        s->code[k] = (int32_t)tree->code[k];
    }
}

/* The loop of lbvh_next, node by node. */
static int32_t tree_walk(void)
{
    struct tree_steps *s = &tree_steps;
    lbvh_real const min[3] = {how.query[0], how.query[1], 0},
                    max[3] = {how.query[2], how.query[3], 0};
    int32_t at = lbvh_root(&s->tree), k = 0;
    while (at >= 0) {
        int const meets = lbvh_boxes_touch(&s->tree.node[at], min, max);
        s->visited[k] = at;
        s->met[k++] = meets;
        at = meets && s->left[at] >= 0 ? s->left[at] : s->skip[at];
    }
    return k;
}

static int32_t tree_find(void)
{
    lbvh_overlap walk = lbvh_overlap_box(&tree_steps.tree, how.query);
    int32_t count = 0;
    while (lbvh_next(&walk)) tree_steps.found[count++] = walk.id;
    return count;
}

static const char *tree_make(int32_t n)
{
    struct tree_steps *s = &tree_steps;
    int32_t const nodes = 2 * n - 1;
    int32_t visited;
    lbvh_desc desc;
    lbvh_result result;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.kind = LBVH_POINTS;
    desc.bits = TREE_BITS;
    desc.keep_codes = 1;
    result = lbvh_build(&s->tree, &desc, how.pos, 0, n);
    if (result != LBVH_OK) return lbvh_result_text(result);
    tree_read();
    visited = tree_walk();
    how_ints("id", s->id, n);
    how_ints("code", s->code, n);
    how_ints("prefix", s->prefix, n + 1);
    how_ints("left", s->left, nodes);
    how_ints("right", s->right, nodes);
    how_ints("first", s->first, nodes);
    how_ints("last", s->last, nodes);
    how_ints("skip", s->skip, nodes);
    how_floats("box", s->box, 4 * nodes);
    how_ints("visited", s->visited, visited);
    how_ints("met", s->met, visited);
    how_ints("found", s->found, tree_find());
    return NULL;
}

#endif /* HOW_TREE_H */
