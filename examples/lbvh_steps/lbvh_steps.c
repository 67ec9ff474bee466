/* lbvh_steps.c - how a linear bounding volume hierarchy is made, step by step, on a few points in
   the plane.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: everything that lbvh.h does between an array of points and the answer to a search,
   printed and drawn:

       1. codes    each point gets the Morton code of its lattice cell: the bits of x and y in turn,
       2. sort     points in the order of their codes: what is near in the row is near in the plane,
       3. splits   ranges of the row that have a common prefix are the nodes of a tree (Kureck's
                   Figure 3.2),
       4. boxes    each node gets the box around its leaves, from the leaves up,
       5. skips    links that make a walk through the tree a loop without a stack; one walk, node by
                   node.

   The program reads the arrays of the tree that lbvh_build made.

   How to run it:

       make build/lbvh_steps && build/lbvh_steps       (from the top of the repository), or
       cc -O3 examples/lbvh_steps/lbvh_steps.c -o lbvh_steps -lstb -lm
       ./lbvh_steps -n 16 --seed 5
       ./lbvh_steps -n 12 --round 2                    equal points
       ./lbvh_steps --points FILE                      yours: a line "x y" each
       ./lbvh_steps -n 2000                            no tables: look at build/steps/levels.png

   What to look at: >>reading and >>walk below; >>codes to >>boxes in lbvh_steps_tables.h print the
   steps, lbvh_steps_draw.h draws them.

   The default points give the keys of the example in Karras' paper (lbvh.h cites it), 00001
   00010 00100 00101 10011 11000 11001 11110, as the first five bits of their codes; so the tree
   is the one in his figures, and in Kureck's Figure 3.2. */

#define PROGRAM "lbvh_steps"
#include "../common/base.h"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/table.h"

#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"

enum { BITS = 30, AXIS_BITS = 15, TABLES_UP_TO = 32, MOST = 100000 };

/* The tree, and what the tables and pictures need to know of each node. */
typedef struct steps {
    lbvh tree;
    int32_t nodes;      /* 2 n - 1 */
    int32_t *order;     /* [nodes] parents before their children, left before right */
    int32_t *first;     /* [nodes] by node: its first leaf */
    int32_t *level;     /* [nodes] by node: inner nodes above it */
    int32_t levels;
    uint8_t *seen;      /* [nodes] by node: what the walk found, see >>walk */
    int shown_bits;     /* leading bits of the codes that tell all of them apart */
} steps;

/* -------------------------------------------------------------------------------------------------
   >>reading: the tree as it is in memory
   ---------------------------------------------------------------------------------------------- */

/* Goes through all nodes, parents first, by the links alone: down to the left child, from a leaf
   on to what comes next. */
static void read_nodes(steps *s)
{
    int32_t at, k = 0;
    for (at = lbvh_root(&s->tree); at >= 0;
         at = lbvh_is_leaf(&s->tree, at) ? s->tree.node[at].skip : s->tree.node[at].link) {
        const lbvh_node *node = &s->tree.node[at];
        s->order[k++] = at;
        if (s->level[at] >= s->levels) s->levels = s->level[at] + 1;
        if (lbvh_is_leaf(&s->tree, at)) continue;
        s->first[node->link] = s->first[at];
        s->first[lbvh_right_child(&s->tree, node)] = lbvh_split_place(&s->tree, node) + 1;
        s->level[node->link] = s->level[lbvh_right_child(&s->tree, node)] = s->level[at] + 1;
    }
}

static steps build(const lbvh_real *point, int32_t n, lbvh_real radius, lbvh_builder builder)
{
    steps s;
    lbvh_desc desc;
    memset(&s, 0, sizeof s);
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.kind = LBVH_POINTS;
    desc.radius = radius;
    desc.bits = BITS;
    desc.builder = builder;
    desc.keep_codes = 1;
    MUST(lbvh, lbvh_build(&s.tree, &desc, point, 0, n), "building the tree");
    s.nodes = 2 * n - 1;
    s.order = (int32_t *)zeros((size_t)s.nodes, sizeof(int32_t));
    s.first = (int32_t *)zeros((size_t)s.nodes, sizeof(int32_t));
    s.level = (int32_t *)zeros((size_t)s.nodes, sizeof(int32_t));
    s.seen = (uint8_t *)zeros((size_t)s.nodes, 1);
    read_nodes(&s);
    return s;
}

static void steps_free(steps *s)
{
    lbvh_free(&s->tree);
    free(s->order);
    free(s->first);
    free(s->level);
    free(s->seen);
}

#include "lbvh_steps_tables.h"

/* -------------------------------------------------------------------------------------------------
   >>walk: the loop of lbvh_next, with a word on each turn
   ---------------------------------------------------------------------------------------------- */

enum { NOT_SEEN, MISSED, MET };

/* Returns how many leaves overlap the box; *visited: how many nodes were looked at. */
static int32_t walk(steps *s, const lbvh_real *box, int aloud, int32_t *visited)
{
    lbvh_real const min[3] = {box[0], box[1], 0}, max[3] = {box[2], box[3], 0};
    int32_t at = lbvh_root(&s->tree), found = 0;
    *visited = 0;
    while (at >= 0) {
        const lbvh_node *node = &s->tree.node[at];
        int const meets = lbvh_boxes_touch(node, min, max), leaf = lbvh_is_leaf(&s->tree, at);
        ++*visited;
        found += meets && leaf;
        s->seen[at] = meets ? MET : MISSED;
        if (aloud) say_turn(s, at, meets);
        at = meets && !leaf ? node->link : node->skip;
    }
    return found;
}

static int32_t show_walk(steps *s, const options *o, int aloud)
{
    lbvh_overlap same = lbvh_overlap_box(&s->tree, o->box);
    int32_t visited, found, by_library = 0;
    printf("\nA walk: what overlaps the box from (%g, %g) to (%g, %g)?\n%s", (double)o->box[0],
           (double)o->box[1], (double)o->box[2], (double)o->box[3], aloud ? "\n" : "");
    found = walk(s, o->box, aloud, &visited);
    while (lbvh_next(&same)) by_library++;
    printf("%s   %ld found, %ld of %ld nodes looked at; lbvh_overlap_box finds %ld.\n",
           aloud ? "\n" : "", (long)found, (long)visited, (long)s->nodes, (long)by_library);
    if (found != by_library) stop(1, "the walk and lbvh_overlap_box disagree");
    return found;
}

/* -------------------------------------------------------------------------------------------------
   >>builders
   ---------------------------------------------------------------------------------------------- */

/* The tree was made from the top, by splitting. Merging neighbours from the leaves up makes the
   same arrays. */
static void compare_builders(const steps *split, const lbvh_real *point)
{
    size_t const n = (size_t)split->tree.n, node_bytes = (2 * n - 1) * sizeof(lbvh_node),
                 code_bytes = n * sizeof(uint64_t);
    steps merge = build(point, split->tree.n, split->tree.desc.radius, LBVH_MERGE);
    int const same_nodes = memcmp(split->tree.node, merge.tree.node, node_bytes) == 0;
    int const same_prefixes = memcmp(split->tree.prefix, merge.tree.prefix, n + 1) == 0;
    int const same_codes = memcmp(split->tree.code, merge.tree.code, code_bytes) == 0;
    steps_free(&merge);
    if (!same_nodes || !same_prefixes || !same_codes)
        stop(1, "LBVH_SPLIT and LBVH_MERGE made different trees");
    printf("\nLBVH_SPLIT made this tree from the top. LBVH_MERGE makes the same tree from the "
           "leaves, in one pass:\nall %lu bytes of its arrays are equal.\n",
           (unsigned long)(node_bytes + n + 1 + code_bytes));
    if (n <= TABLES_UP_TO) show_merge(split);
}

#include "lbvh_steps_draw.h"

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    lbvh_quality quality;
    int32_t n, found;
    int64_t pairs;
    lbvh_real radius, *point = make_points(&o, &n, &radius);
    steps s = build(point, n, radius, LBVH_SPLIT);
    s.shown_bits = bits_to_show(&s);
    if (n <= TABLES_UP_TO) show_tables(&s, point);
    else printf("%ld points: tables are shown for up to %d.\n", (long)n, TABLES_UP_TO);
    found = show_walk(&s, &o, n <= TABLES_UP_TO);
    compare_builders(&s, point);
    show_ploc(&s, point);
    quality = show_quality(&s);
    MUST(lbvh, lbvh_count_pairs(&s.tree, &pairs), "counting pairs");
    write_vtk(&s, o.out);
    write_picture(&s, &o);
    printf("\nPictures: %s/levels.png, and for ParaView %s/levels.vtk\n", o.out, o.out);
    printf("figures: n %ld nodes %ld depth %ld sah %.6f overlap %.6f pairs %lld found %ld\n",
           (long)n, (long)s.nodes, (long)quality.depth, quality.sah, quality.overlap,
           (long long)pairs, (long)found);
    steps_free(&s);
    free(point);
    return 0;
}
