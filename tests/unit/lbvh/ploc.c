/* ploc.c - a part of test_lbvh.c: LBVH_PLOC against the rule that the header states, written once
   more over the nodes of the merged tree; by hand; where it would be too deep.
   SPDX-License-Identifier: MIT OR Unlicense */

/* A cluster: a subtree, or a leaf with its id. */
typedef struct lump { box b; int32_t left, right, id, depth; } lump;
typedef struct lumps { const lbvh *merged; lump *lump; int32_t n; } lumps;

static real bounded_number(real x)
{
    real const most = IS_FLOAT ? (real)5e18 : (real)3e153;
    return x < -most ? -most : x > most ? most : x;
}

static box bounded_box(const real min[3], const real max[3])
{
    box b;
    int a;
    for (a = 0; a < 3; a++) {
        b.min[a] = bounded_number(min[a]);
        b.max[a] = bounded_number(max[a]);
    }
    return b;
}

static box box_around(const box *p, const box *q)
{
    box b = *p;
    int a;
    for (a = 0; a < 3; a++) {
        if (q->min[a] < b.min[a]) b.min[a] = q->min[a];
        if (q->max[a] > b.max[a]) b.max[a] = q->max[a];
    }
    return b;
}

/* Bits of half the area around two clusters, without the 5 lowest; every operation rounded. */
static int64_t cost_of(const lumps *all, int32_t p, int32_t q)
{
    box const b = box_around(&all->lump[p].b, &all->lump[q].b);
    volatile real x = b.max[0] - b.min[0], y = b.max[1] - b.min[1], z = b.max[2] - b.min[2], sum;
    real cost;
    int32_t bits;
    int64_t wide;
    if (all->merged->desc.dim == 2) sum = x + y;
    else {
        volatile real xyz = y + z, yz = y * z;
        xyz = x * xyz;
        sum = xyz + yz;
    }
    cost = sum < 0 ? -sum : sum; /* 2D, both left out */
    memcpy(&bits, &cost, sizeof bits);
    if (IS_FLOAT) return bits >> 5;
    memcpy(&wide, &cost, sizeof cost);
    return wide >> 5;
}

/* The partner of cluster i: the least cost within 8 positions, then the least i ^ j. */
static int partner_of(const lumps *all, const int32_t *list, int count, int i)
{
    int64_t least = 0;
    int j, best = -1;
    for (j = 0; j < count; j++) {
        int64_t const cost = j == i ? 0 : cost_of(all, list[i], list[j]);
        if (j == i || abs(i - j) > 8) continue;
        if (best >= 0 && (cost > least || (cost == least && (i ^ j) > (i ^ best)))) continue;
        least = cost;
        best = j;
    }
    return best;
}

static int one_round(lumps *all, int32_t *list, int count)
{
    int32_t next[32];
    int i, left = 0;
    for (i = 0; i < count; i++) {
        int const j = partner_of(all, list, count, i);
        int const chosen = partner_of(all, list, count, j) == i;
        if (chosen && j < i) continue;
        next[left] = list[i];
        if (chosen) {
            lump *own = &all->lump[all->n];
            own->b = box_around(&all->lump[list[i]].b, &all->lump[list[j]].b);
            own->left = list[i];
            own->right = list[j];
            next[left] = all->n++;
        }
        left++;
    }
    memcpy(list, next, (size_t)left * sizeof *list);
    return left;
}

/* The clusters of a node of the merged tree. */
static int clusters_of(lumps *all, int32_t at, int32_t *list)
{
    const lbvh_node *node = &all->merged->node[at];
    int32_t right[32];
    int count, more;
    if (lbvh_is_leaf(all->merged, at)) {
        lump *leaf = &all->lump[all->n];
        leaf->b = bounded_box(node->min, node->max);
        leaf->left = leaf->right = -1;
        leaf->id = node->link;
        list[0] = all->n++;
        return 1;
    }
    count = clusters_of(all, node->link, list);
    more = clusters_of(all, lbvh_right_child(all->merged, node), right);
    memcpy(list + count, right, (size_t)more * sizeof *list);
    for (count += more; count > (at == 0 ? 1 : 16);) count = one_round(all, list, count);
    return count;
}

/* The depth of a cluster: nodes above its deepest leaf. Children were made before parents. */
static int32_t depth_of(lumps *all)
{
    int32_t k, deepest = 0;
    for (k = 0; k < all->n; k++) {
        lump *own = &all->lump[k];
        own->depth = 0;
        if (own->left < 0) continue;
        own->depth = 1 + (all->lump[own->left].depth > all->lump[own->right].depth
                              ? all->lump[own->left].depth : all->lump[own->right].depth);
        if (own->depth > deepest) deepest = own->depth;
    }
    return deepest;
}

static void check_cluster(const lbvh *t, int32_t at, const lumps *all, int32_t k)
{
    const lump *own = &all->lump[k];
    CHECK(lbvh_is_leaf(t, at) == (own->left < 0));
    if (own->left < 0) CHECK(t->node[at].link == own->id);
    else {
        check_cluster(t, t->node[at].link, all, own->left);
        check_cluster(t, lbvh_right_child(t, &t->node[at]), all, own->right);
    }
}

/* The tree of PLOC in fresh memory and in old, against the clusters of the merged tree. Returns
   their depth. */
static int32_t check_ploc(lbvh *tree, scene *s)
{
    lbvh merged = {0}, bare = {0};
    lumps all;
    int32_t depth, list[32], k;
    uint64_t *code;
    lbvh_builder const had = s->builder;
    int const kept = s->keep;
    s->builder = LBVH_MERGE;
    s->keep = 1;
    build(&merged, s);
    code = NEW(uint64_t, s->n + 1);
    for (k = 0; k < s->n; k++) code[merged.node[merged.first_leaf + k].link] = merged.code[k];
    s->builder = LBVH_PLOC;
    build(tree, s);
    check_tree(tree, s, NULL);
    s->keep = 0;
    build(&bare, s);
    CHECK(!bare.code);
    check_same_tree(tree, &bare);
    s->builder = had;
    s->keep = kept;
    all.merged = &merged;
    all.lump = NEW(lump, 2 * s->n + 1);
    all.n = 0;
    CHECK(s->n == 0 || clusters_of(&all, 0, list) == 1);
    depth = depth_of(&all);
    if (depth > 93) {
        check_same_tree(&bare, &merged);
    } else if (s->n > 0) check_cluster(tree, 0, &all, all.n - 1);
    for (k = 0; k < s->n; k++) {
        const lbvh_node *leaf = &tree->node[tree->first_leaf + k];
        CHECK(tree->code[k] == code[leaf->link]);
        CHECK(same_box(leaf, &s->truth[leaf->link]));
        CHECK(!tree->mask || tree->mask[tree->first_leaf + k] == s->masks[leaf->link]);
    }
    free(code);
    free(all.lump);
    lbvh_free(&bare);
    lbvh_free(&merged);
    return depth;
}

/* Five cubes in a row, from x = 0, 4, 6, 20, 23. Round 1: 4 and 6, 20 and 23 choose each other.
   Round 2: 0 and (4 6). Round 3: the root. MERGE begins with 0 and 4, in one quarter of the row. */
static void test_ploc_by_hand(void **state)
{
    static const real begin[5] = {20, 0, 23, 6, 4};
    static const int32_t order[5] = {1, 4, 3, 0, 2};
    static const uint8_t prefix[6] = {0, 2, 3, 1, 2, 0};
    lbvh tree = {0};
    lbvh_quality q;
    lbvh_desc d;
    real boxes[30];
    int k, a;
    (void)state;
    for (k = 0; k < 5; k++) for (a = 0; a < 3; a++) {
        boxes[6 * k + a] = a ? 0 : begin[k];
        boxes[6 * k + 3 + a] = boxes[6 * k + a] + 1;
    }
    memset(&d, 0, sizeof d);
    d.builder = LBVH_PLOC;
    CHECK_RESULT(lbvh_build(&tree, &d, boxes, 0, 5), LBVH_OK);
    CHECK(memcmp(tree.prefix, prefix, sizeof prefix) == 0);
    for (k = 0; k < 5; k++) CHECK(tree.node[4 + k].link == order[k]);
    CHECK_RESULT(lbvh_measure(&tree, &q), LBVH_OK);
    CHECK(fabs(q.sah - 190.0 / 98) < 1e-12 && q.depth == 3); /* 14 + 18 + 30 + 98, leaves 5 * 6 */
    d.builder = LBVH_MERGE;
    CHECK_RESULT(lbvh_build(&tree, &d, boxes, 0, 5), LBVH_OK);
    CHECK(tree.prefix[1] > tree.prefix[2]);
    lbvh_free(&tree);
}

/* Boxes in boxes around one centre: each round merges the two smallest, and makes a chain of nearly
   all boxes. */
static void test_ploc_too_deep(void **state)
{
    lbvh tree = {0};
    scene s;
    int32_t i, depth, n, below = 0, above = 0;
    int a;
    (void)state;
    dice = wl_seed(41);
    for (n = 265; n < 275; n++) {
        plain_scene(&s, &inputs[0], n);
        for (i = 0; i < n; i++) for (a = 0; a < 6; a++)
            element(&s, i)[a] = (real)((a < 3 ? -1 : 1) * pow(1.1, (double)i));
        find_truth(&s);
        depth = check_ploc(&tree, &s);
        below += depth == 93;
        above += depth == 94;
        if (n % 3 == 0) check_everything(&tree, &s, 4);
        forget(&s);
    }
    CHECK(below > 0 && above > 0);
    lbvh_free(&tree);
}

/* Elements that are left out, one or many, merge as well: the build ends. */
static void test_ploc_left_out(void **state)
{
    lbvh tree = {0};
    scene s;
    int32_t i, n;
    int dim, every;
    (void)state;
    dice = wl_seed(42);
    current_scene = &s;
    describe = describe_scene;
    for (dim = 2; dim <= 3; dim++) for (n = 2; n < 80; n += 1 + n / 20)
        for (every = 1; every < 5; every++) {
            memset(&s, 0, sizeof s);
            s.dim = dim;
            s.bits = 63;
            s.skip_invalid = 1;
            set_kind(&s, 0);
            make_scene(&s, &inputs[0], n);
            for (i = every / 2; i < n; i += every) {
                element(&s, i)[0] = REAL_NAN;
                leave_out(&s.truth[i]);
            }
            (void)check_ploc(&tree, &s);
            forget(&s);
        }
    lbvh_free(&tree);
}

/* Of boxes of very different sizes PLOC makes a tree with less surface. */
static void test_ploc_quality(void **state)
{
    lbvh tree = {0};
    lbvh_quality merge, ploc;
    scene s;
    (void)state;
    dice = wl_seed(43);
    current_scene = &s;
    describe = describe_scene;
    plain_scene(&s, &inputs[0], 0);
    forget(&s);
    memset(&s, 0, sizeof s);
    s.dim = 3;
    s.bits = 63;
    {
        input const mixed = {"all sizes", all_sizes};
        make_scene(&s, &mixed, 3000);
    }
    build(&tree, &s);
    CHECK_RESULT(lbvh_measure(&tree, &merge), LBVH_OK);
    s.builder = LBVH_PLOC;
    build(&tree, &s);
    CHECK_RESULT(lbvh_measure(&tree, &ploc), LBVH_OK);
    CHECK(ploc.sah < merge.sah);
    check_everything(&tree, &s, 12);
    forget(&s);
    lbvh_free(&tree);
}
