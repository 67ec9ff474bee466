/* lbvh_steps_tables.h - what lbvh_steps.c reads and prints: options, points, the tables of each
   step.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef LBVH_STEPS_TABLES_H
#define LBVH_STEPS_TABLES_H

static const lbvh_node *leaf_at(const steps *s, int32_t place)
{
    return &s->tree.node[s->tree.first_leaf + place];
}

/* Common leading bits of the codes of places k-1 and k. More than BITS: the codes are equal, and
   their places decide. */
static int common_bits(const steps *s, int32_t k) { return s->tree.prefix[k] - 1; }

/* A node has fewer bits in common where it is split than anywhere else in its range: those are
   the bits common to all. */
static int prefix_bits(const steps *s, int32_t at)
{
    return common_bits(s, lbvh_split_place(&s->tree, &s->tree.node[at]) + 1);
}

/* Both axes equally many, enough that no two different codes look alike, and no more. */
static int bits_to_show(const steps *s)
{
    int most = 0;
    int32_t k;
    for (k = 1; k < s->tree.n; k++)
        if (common_bits(s, k) < BITS && common_bits(s, k) > most) most = common_bits(s, k);
    return most / 2 * 2 + 2; /* `most` and the one behind it, or both that follow */
}

typedef struct options {
    int32_t n, seed;
    double round;       /* points lie on multiples of this; 0: anywhere */
    double asked[4];    /* the box to search for; NaN: chosen */
    lbvh_real box[4];   /* min x y, max x y */
    const char *points, *out;
} options;

static options parse(int argc, char **argv)
{
    options o = {0, 1, 0, {NAN, NAN, NAN, NAN}, {0, 0, 0, 0}, NULL, "build/steps"};
    const option_line table[] = {
        TEXT("--points", "FILE", &o.points, "your points: a line \"x y\" each"),
        INT("-n", "N", &o.n, 1, MOST,
            "random points (default: 8 chosen ones); up to 32 get tables"),
        INT("--seed", "N", &o.seed, 0, 1e9, "of the random points (default 1)"),
        DOUBLE("--round", "R", &o.round, 1e-6, 8,
               "move points to multiples of R: with 2, some are equal, and so are their codes"),
        DOUBLE("--box", "X0 Y0 X1 Y1", o.asked, -1e6, 1e6,
               "the box to search for (default 2.8 0.9 4.5 4.4, where points lie between 0 and 8; "
               "of your points: the same part of their square)"),
        TEXT("--out", "DIR", &o.out, "where levels.png and levels.vtk go (default build/steps)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL,
                 "Builds a bounding volume hierarchy over points in the plane and shows each step.",
                 NULL);
    if (o.points && o.n) stop(2, "--points and -n: one of them is enough");
    if (o.asked[0] > o.asked[2] || o.asked[1] > o.asked[3])
        stop(2, "--box: X0 must not be above X1, nor Y0 above Y1");
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>points
   ---------------------------------------------------------------------------------------------- */

/* A spiral of two arms: crowded in some places and empty in others, so that the tree can show
   what it makes of that. */
static void spiral(lbvh_real *point, int32_t n, int32_t seed)
{
    uint64_t state = random_seed(seed);
    int32_t i;
    for (i = 0; i < n; i++) {
        double const r = 4 * sqrt(random_double(&state)),
                     half_turn = random_double(&state) < 0.5 ? 0 : 3.14159265;
        double const angle = half_turn + 1.1 * r + 1.5 * (random_double(&state) - 0.5);
        point[2 * i] = (lbvh_real)(4 + r * cos(angle));
        point[2 * i + 1] = (lbvh_real)(4 + r * sin(angle));
    }
}

static lbvh_real *points_of_file(const char *name, int32_t *n)
{
    table t = table_read(name, 2, "two finite numbers x y", "points");
    lbvh_real *point = (lbvh_real *)zeros(2 * (size_t)t.rows, sizeof *point);
    int32_t k;
    if (t.rows > MOST) stop(1, "%s: %ld points; at most %d are shown", name, (long)t.rows, MOST);
    for (k = 0; k < 2 * t.rows; k++) point[k] = (lbvh_real)t.value[k];
    *n = t.rows;
    table_free(&t);
    return point;
}

/* The square of the points of a file: corner, and its edge. */
static double square_of(const lbvh_real *point, int32_t n, double corner[2])
{
    double edge = 0;
    int axis;
    for (axis = 0; axis < 2; axis++) {
        double least = (double)point[axis], most = least;
        int32_t i;
        for (i = 1; i < n; i++) {
            least = fmin(least, (double)point[2 * i + axis]);
            most = fmax(most, (double)point[2 * i + axis]);
        }
        corner[axis] = least;
        edge = fmax(edge, most - least);
    }
    return edge > 0 ? edge : 8;
}

/* The points of a file, as many as asked for, or the eight of Karras' example. Each will be a box
   of edge 2 radius: some touch a neighbour. Chooses the box to search for, too. */
static lbvh_real *make_points(options *o, int32_t *n, lbvh_real *radius)
{
    static const double usual_box[4] = {2.8, 0.9, 4.5, 4.4};
    double corner[2] = {0, 0}, edge = 8;
    static const double eight[16] = {5.3, 3.2, 0,   2.6, 6.6, 8,   2.5, 1.3,
                                     5.5, 5.4, 1.4, 0,   4.4, 4.6, 3.6, 0.5};
    lbvh_real *point;
    int32_t k;
    *n = o->n ? o->n : 8;
    if (o->points) {
        point = points_of_file(o->points, n);
        edge = square_of(point, *n, corner);
    } else {
        point = (lbvh_real *)zeros(2 * (size_t)*n, sizeof *point);
        if (o->n) spiral(point, *n, o->seed);
        else for (k = 0; k < 16; k++) point[k] = (lbvh_real)eight[k];
    }
    for (k = 0; o->round > 0 && k < 2 * *n; k++)
        point[k] = (lbvh_real)(o->round * floor((double)point[k] / o->round + 0.5));
    *radius = (lbvh_real)(0.6 * edge / 8 * sqrt(8.0 / *n));
    for (k = 0; k < 4; k++)
        o->box[k] = (lbvh_real)(isnan(o->asked[k]) ? corner[k % 2] + edge / 8 * usual_box[k]
                                                   : o->asked[k]);
    return point;
}

/* "node 3" or "leaf 5", as the tables call them. */
typedef struct name { char text[24]; } name;

static name name_of(const steps *s, int32_t at)
{
    name n;
    if (at < 0) snprintf(n.text, sizeof n.text, "the end");
    else if (lbvh_is_leaf(&s->tree, at))
        snprintf(n.text, sizeof n.text, "leaf %ld", (long)(at - s->tree.first_leaf));
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

/* -------------------------------------------------------------------------------------------------
   >>codes
   ---------------------------------------------------------------------------------------------- */

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
    printf("1. Codes (Kureck 3.1.1). A square lattice lies over the points, %d x %d cells",
           1 << half, 1 << half);
    printf(half < AXIS_BITS ? " (of 2^%d x 2^%d; these suffice here).\n" : ".\n", AXIS_BITS,
           AXIS_BITS);
    printf("   A code is the bits of the cell's x and y in turn, x first.\n\n");
    printf("   id      x      y   %*s  %-*s  %-*s  code\n", 2 * digits + 1, "cell", wide, "x", wide,
           "y");
    for (id = 0; id < s->tree.n; id++) {
        uint64_t const code = s->tree.code[place_of(s, id)], x = axis_of(code, 0),
                       y = axis_of(code, 1);
        printf("   %2ld  %5.2f  %5.2f   ", (long)id, (double)point[2 * id],
               (double)point[2 * id + 1]);
        printf("%*lu %*lu  ", digits, (unsigned long)(x >> (AXIS_BITS - half)), digits,
               (unsigned long)(y >> (AXIS_BITS - half)));
        printf("%-*s  %-*s  ", wide, bits_of(x << AXIS_BITS, half).text, wide,
               bits_of(y << AXIS_BITS, half).text);
        printf("%s\n", bits_of(code, s->shown_bits).text);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>sort
   ---------------------------------------------------------------------------------------------- */

/* The line between two codes. */
static void show_common(int common, int wide)
{
    int const marked = common < wide ? common : wide;
    printf("              %.*s%*s  ", marked, "------------------------------", wide - marked, "");
    if (common < BITS) printf("%d\n", common);
    else
        printf("%d, the whole code: so the places are compared, %d bits more\n", BITS,
               common - BITS);
}

static void show_sort(const steps *s)
{
    int const wide = s->shown_bits;
    int32_t k;
    printf("\n2. Sort. Below each other, the bits in common with the line above are marked (Kureck "
           "3.1.2).\n\n");
    printf("   place  id  %-*s  in common\n", wide, "code");
    for (k = 0; k < s->tree.n; k++) {
        if (k) show_common(common_bits(s, k), wide);
        printf("   %5ld  %2ld  %s\n", (long)k, (long)leaf_at(s, k)->link,
               bits_of(s->tree.code[k], wide).text);
    }
}

/* -------------------------------------------------------------------------------------------------
   >>splits
   ---------------------------------------------------------------------------------------------- */

static void show_nodes(const steps *s)
{
    const lbvh *tree = &s->tree;
    int32_t at;
    printf("\n3. Splits (Kureck 3.1.3). A node is a range of leaves with a common prefix; behind "
           "it, the range is split where the\n"
           "   next bit turns from 0 to 1. Numbers are Karras': a split after leaf s has children "
           "number s and s + 1. So the\n"
           "   root has the number of its first leaf, a left child that of its last, a right child "
           "that of its first.\n\n");
    printf("   node  leaves   split after  children          common prefix\n");
    for (at = 0; at < tree->first_leaf; at++) {
        const lbvh_node *node = &tree->node[at];
        long const first = (long)s->first[at], last = (long)lbvh_last_place(tree, node),
                   split = (long)lbvh_split_place(tree, node);
        int const bits = prefix_bits(s, at), shown = bits < s->shown_bits ? bits : s->shown_bits;
        printf("   %4ld  %2ld..%-2ld        %2ld       ", (long)at, first, last, split);
        printf("%-7s  %-7s  ", name_of(s, node->link).text,
               name_of(s, lbvh_right_child(tree, node)).text);
        printf(bits ? "%s" : "(none)%s", bits_of(tree->code[s->first[at]], shown).text);
        printf(bits >= BITS ? " and %d bits of the place\n" : "\n", bits - BITS);
    }
}

/* One branch of the drawing below. `stem`: what the lines of the ancestors have drawn to the
   left. */
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

/* One level of the drawing of ranges: each node is a line from its first leaf to its last, with
   its number at one of the two. */
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
            int32_t const last = lbvh_last_place(tree, &tree->node[k]),
                          split = lbvh_split_place(tree, &tree->node[k]);
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
    printf("\n   As ranges (Figure 3.2, bottom): a line over the leaves of each node, its number "
           "at one end,\n"
           "   | at the split; o is a leaf.\n\n");
    printf("   level ");
    for (k = 0; k < s->tree.n; k++)
        printf("%2ld%*s", (long)k, k < s->tree.n - 1 ? wide - 2 : 0, "");
    putchar('\n');
    for (k = 0; k < s->levels; k++) show_level(s, k, wide);
}

/* -------------------------------------------------------------------------------------------------
   >>boxes
   ---------------------------------------------------------------------------------------------- */

/* Parents stand before their children in `order`: read backwards, children come first, as the
   boxes are made. */
static void show_boxes(const steps *s)
{
    int32_t k;
    printf("\n4. Boxes, children before parents: a leaf has the box of its element, here %.2f "
           "around a point; an inner node\n   that around its two children.\n"
           "5. Skips: where a walk goes on when it is done with the node and all below it.\n\n",
           (double)s->tree.desc.radius);
    printf("            min x  min y    max x  max y    made of            skip to\n");
    for (k = s->nodes - 1; k >= 0; k--) {
        int32_t const at = s->order[k];
        const lbvh_node *node = &s->tree.node[at];
        printf("   %-7s  %5.2f  %5.2f    %5.2f  %5.2f    ", name_of(s, at).text,
               (double)node->min[0], (double)node->min[1], (double)node->max[0],
               (double)node->max[1]);
        if (lbvh_is_leaf(&s->tree, at)) printf("id %-4ld          ", (long)node->link);
        else
            printf("%-7s  %-7s ", name_of(s, node->link).text,
                   name_of(s, lbvh_right_child(&s->tree, node)).text);
        printf("  %s\n", name_of(s, node->skip).text);
    }
}

static void say_turn(const steps *s, int32_t at, int meets)
{
    const lbvh_node *node = &s->tree.node[at];
    int const leaf = lbvh_is_leaf(&s->tree, at);
    printf("   %-7s  ", name_of(s, at).text);
    if (!meets) printf("misses: skip to %s\n", name_of(s, node->skip).text);
    else if (leaf)
        printf("overlaps: found id %ld; skip to %s\n", (long)node->link,
               name_of(s, node->skip).text);
    else printf("overlaps: go to its left child, %s\n", name_of(s, node->link).text);
}

/* -------------------------------------------------------------------------------------------------
   >>ploc: the tree by area, beside that of the prefixes
   ---------------------------------------------------------------------------------------------- */

/* A tree as brackets around the ids of its leaves. Nesting is at most 93 deep. */
static void print_brackets(const lbvh *tree, int32_t at)
{
    const lbvh_node *node = &tree->node[at];
    if (lbvh_is_leaf(tree, at)) {
        printf("%ld", (long)node->link);
        return;
    }
    printf("(");
    print_brackets(tree, node->link);
    printf(" ");
    print_brackets(tree, lbvh_right_child(tree, node));
    printf(")");
}

/* LBVH_MERGE as lbvh_i_merge does it, from the prefixes alone: prefix[k] is 1 + the bits in common
   at border k, between leaves k - 1 and k, and 0 at the ends. */
static void show_merge(const steps *s)
{
    const lbvh *tree = &s->tree;
    int32_t waiting[LBVH_STACK], ends[LBVH_STACK], k, i, top = 0;
    printf("After each leaf, a subtree joins the one that waits on its left while that border has "
           "more bits in common\nthan the border behind it; then it waits. Subtrees are written "
           "as their first and last leaf.\n\n   leaf   %-52s  waits then\n", "joins");
    for (k = 0; k < tree->n; k++) {
        char joins[800] = "", node[64];
        int32_t first = k;
        for (; top > 0 && tree->prefix[first] >= tree->prefix[k + 1]; first = waiting[top]) {
            top--;
            snprintf(node, sizeof node, "%s%ld..%ld + %ld..%ld", *joins ? ", " : "",
                     (long)waiting[top], (long)ends[top], (long)first, (long)k);
            if (strlen(joins) + strlen(node) < sizeof joins) strcat(joins, node);
        }
        waiting[top] = first;
        ends[top++] = k;
        printf("   %4ld   %-52s", (long)k, *joins ? joins : "-");
        for (i = 0; i < top; i++) printf("  %ld..%ld", (long)waiting[i], (long)ends[i]);
        printf("\n");
    }
}

static void print_way(const char *name, const lbvh *tree)
{
    lbvh_quality q;
    MUST(lbvh, lbvh_measure(tree, &q), "measuring the tree");
    printf("   %-12s SAH cost %.3f", name, q.sah);
    if (tree->n <= TABLES_UP_TO) {
        printf("   ");
        print_brackets(tree, 0);
    }
    printf("\n");
}

/* Both trees: pairs of brackets are nodes, in the order in which a walk meets the leaves. */
static void show_ploc(const steps *split, const lbvh_real *point)
{
    steps ploc = build(point, split->tree.n, split->tree.desc.radius, LBVH_PLOC);
    printf("\nLBVH_PLOC makes another: in each round, two clusters merge if each makes the "
           "smallest\nbox with the other.\n\n");
    print_way("SPLIT, MERGE", &split->tree);
    print_way("PLOC", &ploc.tree);
    steps_free(&ploc);
}

/* -------------------------------------------------------------------------------------------------
   >>quality
   ---------------------------------------------------------------------------------------------- */

static lbvh_quality show_quality(const steps *s)
{
    lbvh_quality q;
    MUST(lbvh, lbvh_measure(&s->tree, &q), "measuring the tree");
    printf("\nHow good is it?\n\n");
    printf("   SAH cost    %8.3f   nodes, of %ld, that a random long line through the root's box "
           "meets, on average\n",
           q.sah, (long)s->nodes);
    printf("   depth       %8ld   inner nodes above the deepest leaf; %d in a balanced tree\n",
           (long)q.depth, (int)ceil(log2((double)s->tree.n)));
    printf("   mean depth  %8.3f   inner nodes above a leaf, on average\n", q.mean_depth);
    printf("   overlap     %8.3f   what two children share: outlines, summed, over that of the "
           "root; there walks go down both\n",
           q.overlap);
    return q;
}

static void show_tables(const steps *s, const lbvh_real *point)
{
    show_codes(s, point);
    show_sort(s);
    show_nodes(s);
    show_tree(s);
    show_boxes(s);
}

#endif /* LBVH_STEPS_TABLES_H */
