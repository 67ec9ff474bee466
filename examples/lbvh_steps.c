/* lbvh_steps.c - how a linear bounding volume hierarchy is made, step by step, on a few points in the plane.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: everything that lbvh.h does between an array of points and the answer to a search, printed and drawn:

       1. codes    each point gets the Morton code of its lattice cell: the bits of x and y in turn,
       2. sort     points in the order of their codes: what is near in the row is near in the plane,
       3. splits   ranges of the row that have a common prefix are the nodes of a tree (Kureck's Figure 3.2),
       4. boxes    each node gets the box around its leaves, from the leaves up,
       5. skips    links that make a walk through the tree a loop without a stack; one walk, node by node.

   Nothing is computed here a second time: the program reads the arrays of the tree that lbvh_build made.

   How to run it:

       make build/lbvh_steps && build/lbvh_steps       (from the top of the repository), or
       cc -O3 examples/lbvh_steps.c -o lbvh_steps -lstb -lm
       ./lbvh_steps -n 16 --seed 5
       ./lbvh_steps -n 12 --round 2                    equal points
       ./lbvh_steps -n 2000                            too many for tables, but look at build/steps/levels.png

   What to look at: >>codes to >>walk below. The pictures are at the end: >>vtk, >>canvas, >>picture.

   The default points give the keys of the example in Karras' paper (lbvh.h cites it), 00001 00010 00100 00101 10011 11000
   11001 11110, as the first five bits of their codes; so the tree is the one in his figures, and in Kureck's Figure 3.2. */

#define _POSIX_C_SOURCE 200809L /* mkdir */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

#define LBVH_IMPLEMENTATION
#include "../lbvh.h"

enum { BITS = 30, AXIS_BITS = 15, TABLES_UP_TO = 32 };

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

typedef struct options {
    int32_t n;
    uint64_t seed;
    double round;       /* points lie on multiples of this; 0: anywhere */
    lbvh_real box[4];   /* the search: min x y, max x y */
    const char *out;
} options;

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static void stop(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("lbvh_steps: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void must(lbvh_result result, const char *what)
{
    if (result != LBVH_OK) stop("%s: %s", what, lbvh_result_text(result));
}

static void *room_for(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) stop("out of memory");
    return memory;
}

static void help(void)
{
    puts("usage: lbvh_steps [options]\n\n"
         "Builds a bounding volume hierarchy over points in the plane and shows each step. Options:\n\n"
         "  -n N                points: random ones, 1 to 100000 (default: 8 chosen ones); up to 32 also get tables\n"
         "  --seed N            of the random points (default 1)\n"
         "  --round R           move points to multiples of R: with 2, say, some are equal, and so are their codes\n"
         "  --box X0 Y0 X1 Y1   the box to search for (default 2.8 0.9 4.5 4.4; points lie between 0 and 8)\n"
         "  --out DIR           where levels.png and levels.vtk go (default build/steps)\n"
         "  --help              this text");
    exit(0);
}

static double number(const char *option, const char *text, double least, double most)
{
    char *end;
    double value;
    if (!text) stop("%s needs a value (--help tells)", option);
    value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        stop("%s %s: a number from %g to %g is needed", option, text, least, most);
    return value;
}

static double whole_number(const char *option, const char *text, double least, double most)
{
    double const value = number(option, text, least, most);
    if (value != floor(value)) stop("%s %s: a whole number is needed", option, text);
    return value;
}

static options parse(char **argument)
{
    options o = {0, 1, 0, {(lbvh_real)2.8, (lbvh_real)0.9, (lbvh_real)4.5, (lbvh_real)4.4}, "build/steps"};
    int k;
    while (*++argument) {
        const char *name = *argument;
        if (strcmp(name, "--help") == 0) help();
        else if (strcmp(name, "-n") == 0) o.n = (int32_t)whole_number(name, *++argument, 1, 1e5);
        else if (strcmp(name, "--seed") == 0) o.seed = (uint64_t)whole_number(name, *++argument, 0, 1e9);
        else if (strcmp(name, "--round") == 0) o.round = number(name, *++argument, 1e-6, 8);
        else if (strcmp(name, "--out") == 0 && argument[1]) o.out = *++argument;
        else if (strcmp(name, "--out") == 0) stop("--out needs a value (--help tells)");
        else if (strcmp(name, "--box") == 0) {
            for (k = 0; k < 4; k++) o.box[k] = (lbvh_real)number(name, *argument ? *++argument : NULL, -1e6, 1e6);
            if (o.box[0] > o.box[2] || o.box[1] > o.box[3]) stop("--box: X0 must not be above X1, nor Y0 above Y1");
        } else stop("unknown option %s (--help lists them)", name);
    }
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>points
   ------------------------------------------------------------------------------------------------ */

/* The next random number from 0 to 1 (xorshift64*). */
static double next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(0x2545F4914F6CDD1D)) >> 11) / 9007199254740992.0;
}

/* A spiral of two arms: crowded in some places and empty in others, so that the tree can show what it makes of that. */
static void spiral(lbvh_real *point, int32_t n, uint64_t seed)
{
    uint64_t state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    int32_t i;
    for (i = 0; i < n; i++) {
        double const r = 4 * sqrt(next_random(&state)), half_turn = next_random(&state) < 0.5 ? 0 : 3.14159265;
        double const angle = half_turn + 1.1 * r + 1.5 * (next_random(&state) - 0.5);
        point[2 * i] = (lbvh_real)(4 + r * cos(angle));
        point[2 * i + 1] = (lbvh_real)(4 + r * sin(angle));
    }
}

/* As many points as asked for, or the eight of Karras' example. Each will be a box of edge 2 radius: some touch a neighbour. */
static lbvh_real *make_points(const options *o, int32_t *n, lbvh_real *radius)
{
    static const double eight[16] = {5.3, 3.2,  0, 2.6,  6.6, 8,  2.5, 1.3,  5.5, 5.4,  1.4, 0,  4.4, 4.6,  3.6, 0.5};
    lbvh_real *point;
    int32_t k;
    *n = o->n ? o->n : 8;
    *radius = (lbvh_real)(0.6 * sqrt(8.0 / *n));
    point = (lbvh_real *)room_for(2 * (size_t)*n, sizeof *point);
    if (o->n) spiral(point, *n, o->seed);
    else for (k = 0; k < 16; k++) point[k] = (lbvh_real)eight[k];
    for (k = 0; o->round > 0 && k < 2 * *n; k++) point[k] = (lbvh_real)(o->round * floor((double)point[k] / o->round + 0.5));
    return point;
}

/* ------------------------------------------------------------------------------------------------
   >>reading: the tree as it is in memory
   ------------------------------------------------------------------------------------------------ */

static const lbvh_node *leaf_at(const steps *s, int32_t place) { return &s->tree.node[s->tree.first_leaf + place]; }

/* Common leading bits of the codes of places k-1 and k. More than BITS: the codes are equal, and their places decide. */
static int common_bits(const steps *s, int32_t k) { return s->tree.prefix[k] - 1; }

/* A node has fewer bits in common where it is split than anywhere else in its range: those are the bits common to all. */
static int prefix_bits(const steps *s, int32_t at) { return common_bits(s, lbvh_split_place(&s->tree, &s->tree.node[at]) + 1); }

/* Both axes equally many, enough that no two different codes look alike, and no more. */
static int bits_to_show(const steps *s)
{
    int most = 0;
    int32_t k;
    for (k = 1; k < s->tree.n; k++) if (common_bits(s, k) < BITS && common_bits(s, k) > most) most = common_bits(s, k);
    return most / 2 * 2 + 2; /* `most` and the one behind it, or both that follow */
}

/* Goes through all nodes, parents first, by the links alone: down to the left child, from a leaf on to what comes next. */
static void read_nodes(steps *s)
{
    int32_t at, k = 0;
    for (at = lbvh_root(&s->tree); at >= 0; at = lbvh_is_leaf(&s->tree, at) ? s->tree.node[at].skip : s->tree.node[at].link) {
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
    must(lbvh_build(&s.tree, &desc, point, 0, n), "building the tree");
    s.nodes = 2 * n - 1;
    s.order = (int32_t *)room_for((size_t)s.nodes, sizeof(int32_t));
    s.first = (int32_t *)room_for((size_t)s.nodes, sizeof(int32_t));
    s.level = (int32_t *)room_for((size_t)s.nodes, sizeof(int32_t));
    s.seen = (uint8_t *)room_for((size_t)s.nodes, 1);
    read_nodes(&s);
    s.shown_bits = bits_to_show(&s);
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

/* "node 3" or "leaf 5", as the tables call them. */
typedef struct name { char text[24]; } name;

static name name_of(const steps *s, int32_t at)
{
    name n;
    if (at < 0) snprintf(n.text, sizeof n.text, "the end");
    else if (lbvh_is_leaf(&s->tree, at)) snprintf(n.text, sizeof n.text, "leaf %ld", (long)(at - s->tree.first_leaf));
    else snprintf(n.text, sizeof n.text, "node %ld", (long)at);
    return n;
}

/* The first `count` bits of a code, most significant first. */
typedef struct bit_text { char text[BITS + 1]; } bit_text;

static bit_text bits_of(uint64_t code, int count)
{
    bit_text b;
    int k;
    for (k = 0; k < count && k < BITS; k++) b.text[k] = (code >> (BITS - 1 - k) & 1) ? '1' : '0';
    b.text[k] = 0;
    return b;
}

/* Every second bit of a code: what x (axis 0) or y (axis 1) gave to it. */
static uint64_t axis_of(uint64_t code, int axis)
{
    uint64_t bits = 0;
    int k;
    for (k = AXIS_BITS - 1; k >= 0; k--) bits = bits << 1 | (code >> (2 * k + 1 - axis) & 1);
    return bits;
}

/* ------------------------------------------------------------------------------------------------
   >>codes
   ------------------------------------------------------------------------------------------------ */

static int32_t place_of(const steps *s, int32_t id)
{
    int32_t place = 0;
    while (leaf_at(s, place)->link != id) place++;
    return place;
}

static void show_codes(const steps *s, const lbvh_real *point)
{
    int const half = s->shown_bits / 2, wide = half > 4 ? half : 4, digits = half > 6 ? 5 : 2;
    int32_t id;
    printf("1. Codes (Kureck 3.1.1). A square lattice lies over the points, %d x %d cells", 1 << half, 1 << half);
    printf(half < AXIS_BITS ? " (of 2^%d x 2^%d; these suffice here).\n" : ".\n", AXIS_BITS, AXIS_BITS);
    printf("   A code is the bits of the cell's x and y in turn, x first.\n\n");
    printf("   id      x      y   %*s  %-*s  %-*s  code\n", 2 * digits + 1, "cell", wide, "x", wide, "y");
    for (id = 0; id < s->tree.n; id++) {
        uint64_t const code = s->tree.code[place_of(s, id)], x = axis_of(code, 0), y = axis_of(code, 1);
        printf("   %2ld  %5.2f  %5.2f   ", (long)id, (double)point[2 * id], (double)point[2 * id + 1]);
        printf("%*lu %*lu  ", digits, (unsigned long)(x >> (AXIS_BITS - half)), digits, (unsigned long)(y >> (AXIS_BITS - half)));
        printf("%-*s  %-*s  ", wide, bits_of(x << AXIS_BITS, half).text, wide, bits_of(y << AXIS_BITS, half).text);
        printf("%s\n", bits_of(code, s->shown_bits).text);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>sort
   ------------------------------------------------------------------------------------------------ */

/* The line between two codes. */
static void show_common(int common, int wide)
{
    int const marked = common < wide ? common : wide;
    printf("              %.*s%*s  ", marked, "------------------------------", wide - marked, "");
    if (common < BITS) printf("%d\n", common);
    else printf("%d, the whole code: so the places are compared, %d bits more\n", BITS, common - BITS);
}

static void show_sort(const steps *s)
{
    int const wide = s->shown_bits;
    int32_t k;
    printf("\n2. Sort. Below each other, the bits in common with the line above are marked (Kureck 3.1.2).\n\n");
    printf("   place  id  %-*s  in common\n", wide, "code");
    for (k = 0; k < s->tree.n; k++) {
        if (k) show_common(common_bits(s, k), wide);
        printf("   %5ld  %2ld  %s\n", (long)k, (long)leaf_at(s, k)->link, bits_of(s->tree.code[k], wide).text);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>splits
   ------------------------------------------------------------------------------------------------ */

static void show_nodes(const steps *s)
{
    const lbvh *tree = &s->tree;
    int32_t at;
    printf("\n3. Splits (Kureck 3.1.3). A node is a range of leaves with a common prefix; behind it, the range is split where the\n"
           "   next bit turns from 0 to 1. Numbers are Karras': a split after leaf s has children number s and s + 1. So the\n"
           "   root has the number of its first leaf, a left child that of its last, a right child that of its first.\n\n");
    printf("   node  leaves   split after  children          common prefix\n");
    for (at = 0; at < tree->first_leaf; at++) {
        const lbvh_node *node = &tree->node[at];
        long const first = (long)s->first[at], last = (long)lbvh_last_place(tree, node), split = (long)lbvh_split_place(tree, node);
        int const bits = prefix_bits(s, at), shown = bits < s->shown_bits ? bits : s->shown_bits;
        printf("   %4ld  %2ld..%-2ld        %2ld       ", (long)at, first, last, split);
        printf("%-7s  %-7s  ", name_of(s, node->link).text, name_of(s, lbvh_right_child(tree, node)).text);
        printf(bits ? "%s" : "(none)%s", bits_of(tree->code[s->first[at]], shown).text);
        printf(bits >= BITS ? " and %d bits of the place\n" : "\n", bits - BITS);
    }
}

/* One branch of the drawing below. `stem`: what the lines of the ancestors have drawn to the left. */
static void show_branch(const steps *s, int32_t at, const char *stem, const char *fork)
{
    const lbvh_node *node = &s->tree.node[at];
    int const leaf = lbvh_is_leaf(&s->tree, at), bits = leaf ? s->shown_bits : prefix_bits(s, at);
    char longer[5 * TABLES_UP_TO + 8];
    printf(bits ? "   %s%s%s  %s" : "   %s%s%s%s", stem, fork, name_of(s, at).text,
           bits_of(s->tree.code[s->first[at]], bits < s->shown_bits ? bits : s->shown_bits).text);
    printf(leaf ? "  (id %ld)\n" : "\n", (long)node->link);
    if (leaf) return;
    snprintf(longer, sizeof longer, "%s%s", stem, *fork == 0 ? "" : *fork == '|' ? "|   " : "    ");
    show_branch(s, node->link, longer, "|-- ");
    show_branch(s, lbvh_right_child(&s->tree, node), longer, "`-- ");
}

/* One level of the drawing of ranges: each node is a line from its first leaf to its last, with its number at one of the two. */
static void show_level(const steps *s, int32_t level, int wide)
{
    const lbvh *tree = &s->tree;
    char row[6 * TABLES_UP_TO + 8], digits[16];
    int32_t k, at;
    memset(row, ' ', sizeof row);
    for (k = 0; k < s->nodes; k++) {
        if (s->level[k] != level) continue;
        if (lbvh_is_leaf(tree, k)) row[(k - tree->first_leaf) * wide + 1] = 'o';
        else {
            int32_t const last = lbvh_last_place(tree, &tree->node[k]), split = lbvh_split_place(tree, &tree->node[k]);
            for (at = s->first[k] * wide; at <= last * wide + 1; at++) row[at] = '-';
            row[split * wide + wide / 2 + 1] = '|';
            snprintf(digits, sizeof digits, "%2ld", (long)k);
            memcpy(row + k * wide, digits, strlen(digits));
        }
    }
    for (k = (int32_t)sizeof row; row[k - 1] == ' ';) k--;
    row[k] = 0;
    printf("   %2ld    %s\n", (long)level, row);
}

static void show_tree(const steps *s)
{
    int const wide = s->tree.n > 16 ? 4 : 6;
    int32_t k;
    printf("\n   As a tree, each node with its common prefix (Figure 3.2, top):\n\n");
    show_branch(s, lbvh_root(&s->tree), "", "");
    printf("\n   As ranges (Figure 3.2, bottom): a line over the leaves of each node, its number at one end,\n"
           "   | at the split; o is a leaf.\n\n");
    printf("   level ");
    for (k = 0; k < s->tree.n; k++) printf("%2ld%*s", (long)k, k < s->tree.n - 1 ? wide - 2 : 0, "");
    putchar('\n');
    for (k = 0; k < s->levels; k++) show_level(s, k, wide);
}

/* ------------------------------------------------------------------------------------------------
   >>boxes
   ------------------------------------------------------------------------------------------------ */

/* Parents stand before their children in `order`: read backwards, children come first, as the boxes are made. */
static void show_boxes(const steps *s)
{
    int32_t k;
    printf("\n4. Boxes, children before parents: a leaf has the box of its element, an inner node that around its two children.\n"
           "5. Skips: where a walk goes on when it is done with the node and all below it.\n\n");
    printf("            min x  min y    max x  max y    made of            skip to\n");
    for (k = s->nodes - 1; k >= 0; k--) {
        int32_t const at = s->order[k];
        const lbvh_node *node = &s->tree.node[at];
        printf("   %-7s  %5.2f  %5.2f    %5.2f  %5.2f    ", name_of(s, at).text, (double)node->min[0], (double)node->min[1],
               (double)node->max[0], (double)node->max[1]);
        if (lbvh_is_leaf(&s->tree, at)) printf("id %-4ld          ", (long)node->link);
        else printf("%-7s  %-7s ", name_of(s, node->link).text, name_of(s, lbvh_right_child(&s->tree, node)).text);
        printf("  %s\n", name_of(s, node->skip).text);
    }
}

/* ------------------------------------------------------------------------------------------------
   >>walk: the loop of lbvh_next, with a word on each turn
   ------------------------------------------------------------------------------------------------ */

static void say_turn(const steps *s, int32_t at, int meets)
{
    const lbvh_node *node = &s->tree.node[at];
    int const leaf = lbvh_is_leaf(&s->tree, at);
    printf("   %-7s  ", name_of(s, at).text);
    if (!meets) printf("misses: skip to %s\n", name_of(s, node->skip).text);
    else if (leaf) printf("overlaps: found id %ld; skip to %s\n", (long)node->link, name_of(s, node->skip).text);
    else printf("overlaps: go to its left child, %s\n", name_of(s, node->link).text);
}

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
    printf("\nA walk: who overlaps the box from (%g, %g) to (%g, %g)?\n%s", (double)o->box[0], (double)o->box[1], (double)o->box[2],
           (double)o->box[3], aloud ? "\n" : "");
    found = walk(s, o->box, aloud, &visited);
    while (lbvh_next(&same)) by_library++;
    printf("%s   %ld found, %ld of %ld nodes looked at; lbvh_overlap_box finds %ld.\n", aloud ? "\n" : "", (long)found,
           (long)visited, (long)s->nodes, (long)by_library);
    if (found != by_library) stop("the walk and lbvh_overlap_box disagree");
    return found;
}

/* ------------------------------------------------------------------------------------------------
   >>builders
   ------------------------------------------------------------------------------------------------ */

/* The tree was made from the top, by splitting. Merging neighbours from the leaves up makes the same arrays. */
static void compare_builders(const steps *split, const lbvh_real *point)
{
    size_t const n = (size_t)split->tree.n, node_bytes = (2 * n - 1) * sizeof(lbvh_node), code_bytes = n * sizeof(uint64_t);
    steps merge = build(point, split->tree.n, split->tree.desc.radius, LBVH_MERGE);
    int const same_nodes = memcmp(split->tree.node, merge.tree.node, node_bytes) == 0;
    int const same_prefixes = memcmp(split->tree.prefix, merge.tree.prefix, n + 1) == 0;
    int const same_codes = memcmp(split->tree.code, merge.tree.code, code_bytes) == 0;
    steps_free(&merge);
    if (!same_nodes || !same_prefixes || !same_codes) stop("LBVH_SPLIT and LBVH_MERGE made different trees");
    printf("\nLBVH_SPLIT made this tree from the top. LBVH_MERGE makes it from the leaves: the same %lu bytes of nodes, prefixes\n"
           "and codes.\n", (unsigned long)(node_bytes + n + 1 + code_bytes));
}

/* ------------------------------------------------------------------------------------------------
   >>quality
   ------------------------------------------------------------------------------------------------ */

static lbvh_quality show_quality(const steps *s)
{
    lbvh_quality q;
    must(lbvh_measure(&s->tree, &q), "measuring the tree");
    printf("\nHow good is it?\n\n");
    printf("   SAH cost    %8.3f   nodes, of %ld, that a random long line through the root's box meets, on average\n", q.sah,
           (long)s->nodes);
    printf("   depth       %8ld   inner nodes above the deepest leaf; %d in a balanced tree\n", (long)q.depth,
           (int)ceil(log2((double)s->tree.n)));
    printf("   mean depth  %8.3f   inner nodes above a leaf, on average\n", q.mean_depth);
    printf("   overlap     %8.3f   what two children share: outlines, summed, over that of the root; there walks go down both\n",
           q.overlap);
    return q;
}

/* ------------------------------------------------------------------------------------------------
   >>files
   ------------------------------------------------------------------------------------------------ */

typedef struct out_file { FILE *file; char path[1024]; } out_file;

/* As mkdir -p. */
static void make_folder(const char *path)
{
    char part[512];
    size_t k, length = strlen(path);
    if (length >= sizeof part) stop("--out: the name is too long");
    for (k = 1; k <= length; k++) {
        if (path[k] != '/' && path[k] != 0) continue;
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) stop("%s: %s", part, strerror(errno));
    }
}

static out_file open_file(const char *folder, const char *file_name)
{
    out_file out;
    snprintf(out.path, sizeof out.path, "%s/%s", folder, file_name);
    out.file = fopen(out.path, "wb");
    if (!out.file) stop("%s: %s", out.path, strerror(errno));
    return out;
}

static void close_file(out_file *out)
{
    if (ferror(out->file) | fclose(out->file)) stop("%s: could not be written: %s", out->path, strerror(errno));
}

/* ------------------------------------------------------------------------------------------------
   >>vtk: all boxes as rectangles, each level above the one below. In ParaView: Open, Apply, color by "level".
   ------------------------------------------------------------------------------------------------ */

static void write_vtk(const steps *s, const char *folder)
{
    const lbvh_node *root = &s->tree.node[0];
    double const wide = (double)(root->max[0] - root->min[0]), storey = wide / s->levels;
    out_file out = open_file(folder, "levels.vtk");
    long const boxes = (long)s->nodes;
    long k;
    fprintf(out.file, "# vtk DataFile Version 3.0\nboxes of an lbvh, level by level\nASCII\nDATASET POLYDATA\n");
    fprintf(out.file, "POINTS %ld float\n", 4 * boxes);
    for (k = 0; k < boxes; k++) {
        const lbvh_node *b = &s->tree.node[k];
        double const z = storey * (s->levels - 1 - s->level[k]), x0 = (double)b->min[0], y0 = (double)b->min[1];
        double const x1 = (double)b->max[0], y1 = (double)b->max[1];
        fprintf(out.file, "%.9g %.9g %g  %.9g %.9g %g  ", x0, y0, z, x1, y0, z); /* 9 digits tell all floats apart */
        fprintf(out.file, "%.9g %.9g %g  %.9g %.9g %g\n", x1, y1, z, x0, y1, z);
    }
    fprintf(out.file, "POLYGONS %ld %ld\n", boxes, 5 * boxes);
    for (k = 0; k < boxes; k++) fprintf(out.file, "4 %ld %ld %ld %ld\n", 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3);
    fprintf(out.file, "CELL_DATA %ld\nSCALARS level int 1\nLOOKUP_TABLE default\n", boxes);
    for (k = 0; k < boxes; k++) fprintf(out.file, "%ld\n", (long)s->level[k]);
    close_file(&out);
}

/* ------------------------------------------------------------------------------------------------
   >>canvas: drawn at twice the size, then halved: that smooths the edges
   ------------------------------------------------------------------------------------------------ */

typedef struct color { double r, g, b; } color;
typedef struct canvas {
    int width, height;
    int left, top, right, bottom;   /* nothing is drawn outside of these */
    unsigned char *rgb;
} canvas;

static const color white = {1, 1, 1}, ink = {0.13, 0.14, 0.17}, faint = {0.88, 0.89, 0.91};

static color mix(color a, color b, double t)
{
    color const c = {a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
    return c;
}

/* `alpha`: how much of the color, over what is there. */
static void dot(canvas *c, int x, int y, color with, double alpha)
{
    unsigned char *p;
    if (x < c->left || y < c->top || x >= c->right || y >= c->bottom) return;
    p = c->rgb + 3 * ((size_t)y * (size_t)c->width + (size_t)x);
    p[0] = (unsigned char)(p[0] + (255 * with.r - p[0]) * alpha + 0.5);
    p[1] = (unsigned char)(p[1] + (255 * with.g - p[1]) * alpha + 0.5);
    p[2] = (unsigned char)(p[2] + (255 * with.b - p[2]) * alpha + 0.5);
}

static void fill(canvas *c, int x0, int y0, int x1, int y1, color with, double alpha)
{
    int x, y;
    for (y = y0 > c->top ? y0 : c->top; y < y1 && y < c->bottom; y++)
        for (x = x0 > c->left ? x0 : c->left; x < x1 && x < c->right; x++) dot(c, x, y, with, alpha);
}

static void frame(canvas *c, int x0, int y0, int x1, int y1, int thick, color with)
{
    fill(c, x0, y0, x1, y0 + thick, with, 1);
    fill(c, x0, y1 - thick, x1, y1, with, 1);
    fill(c, x0, y0, x0 + thick, y1, with, 1);
    fill(c, x1 - thick, y0, x1, y1, with, 1);
}

static void disc(canvas *c, double cx, double cy, double radius, color with)
{
    int x, y;
    for (y = (int)(cy - radius); y <= (int)(cy + radius); y++)
        for (x = (int)(cx - radius); x <= (int)(cx + radius); x++)
            if ((x - cx) * (x - cx) + (y - cy) * (y - cy) <= radius * radius) dot(c, x, y, with, 1);
}

static void line(canvas *c, double x0, double y0, double x1, double y1, double thick, color with)
{
    int const steps_along = 1 + (int)(fabs(x1 - x0) + fabs(y1 - y0));
    int k;
    for (k = 0; k <= steps_along; k++) disc(c, x0 + (x1 - x0) * k / steps_along, y0 + (y1 - y0) * k / steps_along, thick / 2, with);
}

static int text_width(const char *text, int scale)
{
    char copy[160];
    snprintf(copy, sizeof copy, "%s", text);
    return scale * stb_easy_font_width(copy);
}

/* The font comes as rectangles of four corners {x, y, z, color}. */
static void text_at(canvas *c, int x, int y, int scale, color with, const char *text)
{
    struct { float x, y, z; unsigned char rgba[4]; } corner[4 * 6 * 160];
    char copy[160];
    int k, quads;
    snprintf(copy, sizeof copy, "%s", text);
    quads = stb_easy_font_print(0, 0, copy, NULL, corner, (int)sizeof corner);
    for (k = 0; k < quads; k++)
        fill(c, x + scale * (int)corner[4 * k].x, y + scale * (int)corner[4 * k].y, x + scale * (int)corner[4 * k + 2].x,
             y + scale * (int)corner[4 * k + 2].y, with, 1);
}

static void draw_only(canvas *c, int left, int top, int width, int height)
{
    c->left = left;
    c->top = top;
    c->right = left + width;
    c->bottom = top + height;
}

static canvas canvas_new(int width, int height)
{
    canvas c;
    c.width = width;
    c.height = height;
    draw_only(&c, 0, 0, width, height);
    c.rgb = (unsigned char *)room_for((size_t)width * (size_t)height, 3);
    memset(c.rgb, 255, 3 * (size_t)width * (size_t)height);
    return c;
}

/* Each pixel is the average of four. */
static canvas halved(const canvas *from)
{
    canvas to = canvas_new(from->width / 2, from->height / 2);
    size_t const row = 3 * (size_t)from->width;
    int x, y, k;
    for (y = 0; y < to.height; y++)
        for (x = 0; x < to.width; x++) {
            const unsigned char *p = from->rgb + (size_t)(2 * y) * row + (size_t)(6 * x);
            unsigned char *q = to.rgb + 3 * ((size_t)y * (size_t)to.width + (size_t)x);
            for (k = 0; k < 3; k++) q[k] = (unsigned char)((p[k] + p[k + 3] + p[row + (size_t)k] + p[row + (size_t)k + 3] + 2) / 4);
        }
    return to;
}

static void put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static void write_png(const canvas *c, const char *folder, const char *file_name)
{
    out_file out = open_file(folder, file_name);
    if (!stbi_write_png_to_func(put_bytes, out.file, c->width, c->height, 3, c->rgb, 3 * c->width))
        stop("%s: out of memory", out.path);
    close_file(&out);
}

/* ------------------------------------------------------------------------------------------------
   >>picture: one panel for the sorted points, one for each level, one for the walk, and below them the ranges of all nodes
   ------------------------------------------------------------------------------------------------ */

enum { PANEL = 640, GAP = 48, CAPTION = 56, COLUMNS = 4, TITLE = 96, STOREY = 44, MOST_LEVELS = 30 };

/* A square window of the plane, and where it is on the canvas (y up). */
typedef struct window { double x, y, size; int left, top; } window;

static int to_x(const window *w, double x) { return w->left + (int)((x - w->x) / w->size * PANEL + 0.5); }
static int to_y(const window *w, double y) { return w->top + PANEL - (int)((y - w->y) / w->size * PANEL + 0.5); }

static window window_around(const lbvh_node *root)
{
    double const wide = (double)(root->max[0] - root->min[0]), high = (double)(root->max[1] - root->min[1]);
    double const size = 1.06 * (wide > high ? wide : high);
    window w;
    w.size = size > 0 ? size : 1;
    w.x = 0.5 * (double)(root->min[0] + root->max[0]) - 0.5 * w.size;
    w.y = 0.5 * (double)(root->min[1] + root->max[1]) - 0.5 * w.size;
    w.left = w.top = 0;
    return w;
}

/* All colors of the rainbow but the way back, 0 to 1: red, yellow, green, blue, violet. */
static color rainbow(double t)
{
    double const at = 4.9 * t;
    static const color stops[6] = {{0.86, 0.20, 0.18}, {0.95, 0.60, 0.10}, {0.45, 0.68, 0.15},
                                   {0.05, 0.62, 0.62}, {0.18, 0.38, 0.80}, {0.58, 0.25, 0.72}};
    int const k = at < 5 ? (int)at : 4;
    return mix(stops[k], stops[k + 1], at - k);
}

/* A node's color tells where the middle of its leaves is in the row: a node looks much like its children, and unlike what is near
   in the plane but not in the row. */
static color color_of(const steps *s, int32_t at)
{
    return rainbow((s->first[at] + lbvh_last_place(&s->tree, &s->tree.node[at]) + 1) / (2.0 * s->tree.n));
}

/* Cells of the lattice, where there are few enough to see. The tree has its lattice at half scale. */
static void draw_lattice(canvas *c, const steps *s, const window *w)
{
    const lbvh_lattice *lattice = &s->tree.lattice;
    int const cells = 1 << (s->shown_bits / 2);
    double const edge = lattice->scale > 0 ? 2 * (1 << AXIS_BITS) / (double)lattice->scale / cells : 0;
    double const x = 2 * (double)lattice->origin[0], y = 2 * (double)lattice->origin[1];
    int k;
    if (cells > 32 || !(edge > 0)) return;
    for (k = 0; k <= cells; k++) {
        fill(c, to_x(w, x), to_y(w, y + k * edge) - 1, to_x(w, x + cells * edge) + 1, to_y(w, y + k * edge) + 1, faint, 1);
        fill(c, to_x(w, x + k * edge) - 1, to_y(w, y + cells * edge), to_x(w, x + k * edge) + 1, to_y(w, y) + 1, faint, 1);
    }
}

/* An element lies in the middle of its box. */
static void centre_of(const lbvh_node *leaf, double *x, double *y)
{
    *x = 0.5 * (double)(leaf->min[0] + leaf->max[0]);
    *y = 0.5 * (double)(leaf->min[1] + leaf->max[1]);
}

static double dot_radius(const steps *s) { return s->tree.n <= TABLES_UP_TO ? 9 : s->tree.n <= 4000 ? 4 : 2; }

/* A label on white, so that it can be read on anything. */
static void label(canvas *c, int x, int y, color with, long value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", value);
    fill(c, x - 3, y - 2, x + text_width(digits, 3) + 2, y + 25, white, 0.8);
    text_at(c, x, y, 3, with, digits);
}

/* The points, joined in the order of their codes. */
static void draw_curve(canvas *c, const steps *s, const window *w)
{
    double const radius = dot_radius(s);
    double x, y, next_x, next_y;
    int32_t k;
    for (k = 0; k + 1 < s->tree.n; k++) {
        centre_of(leaf_at(s, k), &x, &y);
        centre_of(leaf_at(s, k + 1), &next_x, &next_y);
        line(c, to_x(w, x), to_y(w, y), to_x(w, next_x), to_y(w, next_y), radius / 2 + 1,
             mix(rainbow((k + 1.0) / s->tree.n), white, 0.25));
    }
    for (k = 0; k < s->tree.n; k++) {
        centre_of(leaf_at(s, k), &x, &y);
        disc(c, to_x(w, x), to_y(w, y), radius, color_of(s, s->tree.first_leaf + k));
        if (s->tree.n <= TABLES_UP_TO) label(c, to_x(w, x) + 12, to_y(w, y) - 30, ink, (long)k);
    }
}

/* The box of node k, and for few nodes its number. */
static void draw_box(canvas *c, const steps *s, const window *w, int32_t k, color with, double inside)
{
    const lbvh_node *b = &s->tree.node[k];
    int const x0 = to_x(w, (double)b->min[0]), x1 = to_x(w, (double)b->max[0]) + 1;
    int const y0 = to_y(w, (double)b->max[1]), y1 = to_y(w, (double)b->min[1]) + 1;
    int const few = s->tree.n <= TABLES_UP_TO;
    fill(c, x0, y0, x1, y1, with, inside);
    frame(c, x0, y0, x1, y1, few ? 5 : 3, with);
    if (few) label(c, x0 + 10, y0 + 9, mix(with, ink, 0.5), (long)(lbvh_is_leaf(&s->tree, k) ? k - s->tree.first_leaf : k));
}

/* All points; gray where their leaf lies above the level. */
static void draw_points(canvas *c, const steps *s, const window *w, int32_t level)
{
    double x, y;
    int32_t k;
    for (k = 0; k < s->tree.n; k++) {
        int32_t const leaf = s->tree.first_leaf + k;
        centre_of(leaf_at(s, k), &x, &y);
        disc(c, to_x(w, x), to_y(w, y), 0.7 * dot_radius(s),
             s->level[leaf] < level ? mix(ink, white, 0.75) : mix(color_of(s, leaf), ink, 0.2));
    }
}

static void draw_level(canvas *c, const steps *s, const window *w, int32_t level)
{
    int32_t k;
    draw_points(c, s, w, level);
    for (k = 0; k < s->nodes; k++) if (s->level[k] == level) draw_box(c, s, w, k, color_of(s, k), 0.25);
}

/* What the walk looked at: gray boxes missed, and all in them was skipped; colored ones are the leaves found. */
static void draw_walk(canvas *c, const steps *s, const window *w, const lbvh_real *box)
{
    int32_t k;
    draw_points(c, s, w, s->levels);
    for (k = 0; k < s->nodes; k++) if (s->seen[k] == MISSED) draw_box(c, s, w, k, mix(ink, white, 0.6), 0.25);
    for (k = s->tree.first_leaf; k < s->nodes; k++) if (s->seen[k] == MET) draw_box(c, s, w, k, color_of(s, k), 0.5);
    frame(c, to_x(w, (double)box[0]), to_y(w, (double)box[3]), to_x(w, (double)box[2]), to_y(w, (double)box[1]), 5, ink);
}

static void count_level(const steps *s, int32_t level, long *inner, long *leaves)
{
    int32_t k;
    *inner = *leaves = 0;
    for (k = 0; k < s->nodes; k++) {
        if (s->level[k] != level) continue;
        if (lbvh_is_leaf(&s->tree, k)) ++*leaves;
        else ++*inner;
    }
}

/* The window of the next panel, with its caption. From now on drawing ends at its frame. */
static window next_panel(canvas *c, const steps *s, int *panel, const char *caption)
{
    window w = window_around(&s->tree.node[0]);
    w.left = GAP + *panel % COLUMNS * (PANEL + GAP);
    w.top = TITLE + CAPTION + *panel / COLUMNS * (PANEL + CAPTION + GAP);
    ++*panel;
    draw_only(c, 0, 0, c->width, c->height);
    text_at(c, w.left, w.top - 36, 3, ink, caption);
    frame(c, w.left - 2, w.top - 2, w.left + PANEL + 2, w.top + PANEL + 2, 2, mix(ink, white, 0.6));
    draw_only(c, w.left, w.top, PANEL, PANEL);
    draw_lattice(c, s, &w);
    return w;
}

static void draw_panels(canvas *c, const steps *s, const options *o, int32_t levels)
{
    window w;
    char caption[80];
    long inner, leaves;
    int32_t level;
    int panel = 0;
    w = next_panel(c, s, &panel, "points in the order of their codes");
    draw_curve(c, s, &w);
    for (level = 0; level < levels; level++) {
        count_level(s, level, &inner, &leaves);
        snprintf(caption, sizeof caption, "level %ld: %ld inner nodes, %ld leaves", (long)level, inner, leaves);
        w = next_panel(c, s, &panel, caption);
        draw_level(c, s, &w, level);
    }
    w = next_panel(c, s, &panel, "a walk: boxes that miss are gray");
    draw_walk(c, s, &w, o->box);
    draw_only(c, 0, 0, c->width, c->height);
}

/* The ranges of all nodes, a row for each level; few nodes: numbers at the end that Karras' numbering takes them from. */
static void draw_ranges(canvas *c, const steps *s, int top)
{
    double const wide = (double)(c->width - 2 * GAP) / s->tree.n;
    int const few = s->tree.n <= TABLES_UP_TO, thin = wide > 8 ? 4 : 0;
    int32_t k;
    text_at(c, GAP, top - 36, 3, ink,
            few ? "ranges of the nodes, from the root down; an inner node has its number at the end it comes from"
                : "ranges of the nodes in the row of leaves, from the root down");
    for (k = 0; k < s->nodes; k++) {
        int const leaf = lbvh_is_leaf(&s->tree, k), y = top + (int)s->level[k] * STOREY;
        int const x0 = GAP + (int)(s->first[k] * wide + 0.5) + thin;
        int const x1 = GAP + (int)((lbvh_last_place(&s->tree, &s->tree.node[k]) + 1) * wide + 0.5) - thin;
        int32_t const number_at = leaf ? k - s->tree.first_leaf : k;
        fill(c, x0, y, x1 > x0 ? x1 : x0 + 1, y + STOREY - 6, color_of(s, k), leaf ? 0.45 : 1);
        if (few) label(c, GAP + (int)((number_at + 0.5) * wide) - 10, y + 7, leaf ? mix(ink, white, 0.35) : ink, (long)number_at);
    }
}

static void write_picture(const steps *s, const options *o)
{
    int32_t const levels = s->levels < MOST_LEVELS ? s->levels : MOST_LEVELS;
    int const rows = (int)(levels + 2 + COLUMNS - 1) / COLUMNS, ranges_top = TITLE + rows * (PANEL + CAPTION + GAP) + CAPTION;
    canvas large = canvas_new(COLUMNS * (PANEL + GAP) + GAP, ranges_top + (int)s->levels * STOREY + GAP), small;
    char title[120];
    snprintf(title, sizeof title, "lbvh.h: %ld points, %ld inner nodes, %ld levels", (long)s->tree.n, (long)s->tree.first_leaf,
             (long)s->levels);
    text_at(&large, GAP, 36, 6, ink, title);
    draw_panels(&large, s, o, levels);
    draw_ranges(&large, s, ranges_top);
    small = halved(&large);
    write_png(&small, o->out, "levels.png");
    free(large.rgb);
    free(small.rgb);
}

/* ------------------------------------------------------------------------------------------------
   >>main
   ------------------------------------------------------------------------------------------------ */

static void show_tables(const steps *s, const lbvh_real *point)
{
    show_codes(s, point);
    show_sort(s);
    show_nodes(s);
    show_tree(s);
    show_boxes(s);
}

int main(int argc, char **argv)
{
    options const o = parse(argv);
    lbvh_real radius, *point;
    lbvh_quality quality;
    int32_t n, found;
    int64_t pairs;
    steps s;
    (void)argc;
    point = make_points(&o, &n, &radius);
    s = build(point, n, radius, LBVH_SPLIT);
    if (n <= TABLES_UP_TO) show_tables(&s, point);
    else printf("%ld points: tables are shown for up to %d.\n", (long)n, TABLES_UP_TO);
    found = show_walk(&s, &o, n <= TABLES_UP_TO);
    compare_builders(&s, point);
    quality = show_quality(&s);
    must(lbvh_count_pairs(&s.tree, &pairs), "counting pairs");
    make_folder(o.out);
    write_vtk(&s, o.out);
    write_picture(&s, &o);
    printf("\nPictures: %s/levels.png, and for ParaView %s/levels.vtk\n", o.out, o.out);
    printf("figures: n %ld nodes %ld depth %ld sah %.6f overlap %.6f pairs %lld found %ld\n", (long)n, (long)s.nodes,
           (long)quality.depth, quality.sah, quality.overlap, (long long)pairs, (long)found);
    steps_free(&s);
    free(point);
    return 0;
}
