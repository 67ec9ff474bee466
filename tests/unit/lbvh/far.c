/* far.c - a part of test_lbvh.c: elements far from the others, and clusters far apart. Searches of
   the rest visit at most 4 times the nodes that they visit where all lie together.
   SPDX-License-Identifier: MIT OR Unlicense */

typedef enum placing {
    TOGETHER, ONE_FAR, ONE_IN_100_FAR, ALL_SCALES, HALF_SPACE, TWO_CLUSTERS, TEN_CLUSTERS, PLACINGS
} placing;

typedef struct far_scene {
    lbvh_desc desc;
    placing of;
    double distance; /* in edges of the scene */
    double edge;
    int32_t n;
    real *boxes;
} far_scene;

/* Where element i lies: its centre. */
static void place_element(const far_scene *s, int32_t i, double centre[3])
{
    int const dim = s->desc.dim, cluster = i % (s->of == TWO_CLUSTERS ? 2 : 10);
    double const distance = s->distance * s->edge;
    int const is_far = s->of == ONE_FAR ? i == s->n / 2 : i % 100 == 50;
    int a;
    for (a = 0; a < dim; a++) centre[a] = s->edge * wl_u(&dice);
    if (s->of == ONE_FAR && is_far) centre[1] = -distance;
    for (a = 0; a < dim; a++) {
        double const u = 2 * wl_u(&dice) - 1;
        if (s->of == ONE_IN_100_FAR && is_far) centre[a] = u * distance;
        if (s->of == ALL_SCALES && is_far) centre[a] = u * s->edge * pow(s->distance, wl_u(&dice));
        if (s->of >= TWO_CLUSTERS) centre[a] += distance * sin(cluster * (3.7 + a));
    }
}

static void make_far_scene(far_scene *s)
{
    int const dim = s->desc.dim;
    double const half = 0.3 * s->edge / pow(s->n, 1.0 / dim);
    int32_t i;
    int a;
    dice = wl_seed(71);
    for (i = 0; i < s->n; i++) {
        real *const box = s->boxes + 2 * dim * i;
        double centre[3];
        place_element(s, i, centre);
        for (a = 0; a < dim; a++) {
            box[a] = (real)(centre[a] - half);
            box[dim + a] = (real)(centre[a] + half);
        }
        if (s->of != HALF_SPACE || i != s->n / 2) continue;
        for (a = 0; a < dim; a++) {
            box[a] = (real)(-s->distance * s->edge);
            box[dim + a] = (real)(a == 1 ? 0 : s->distance * s->edge);
        }
    }
}

/* The nodes that a search visits. */
static int32_t nodes_visited(const lbvh *t, const real min[3], const real max[3])
{
    int32_t at = lbvh_root(t), visited = 0;
    for (; at >= 0; visited++) {
        const lbvh_node *node = &t->node[at];
        at = lbvh_boxes_touch(node, min, max) && !lbvh_is_leaf(t, at) ? node->link : node->skip;
    }
    return visited;
}

/* On average: for the box of an element, and for boxes as long as half a scene, like rays. */
static void mean_visits(const lbvh *t, const far_scene *s, double visits[2])
{
    int const dim = s->desc.dim;
    int32_t i, searches = 0;
    visits[0] = visits[1] = 0;
    for (i = 0; i < s->n; i += 7, searches++) {
        const real *box = s->boxes + 2 * dim * i;
        real min[3] = {0, 0, 0}, max[3] = {0, 0, 0};
        int a;
        if (s->of == HALF_SPACE && i == s->n / 2) continue;
        for (a = 0; a < dim; a++) min[a] = box[a], max[a] = box[dim + a];
        visits[0] += nodes_visited(t, min, max);
        max[i % dim] += (real)(s->edge / 2);
        visits[1] += nodes_visited(t, min, max);
    }
    for (i = 0; i < 2; i++) visits[i] /= searches;
}

/* The same after a build; `improve`: 1 with rotations, 2 with its upper nodes made anew. */
static void visits_of(far_scene *s, int improve, double visits[2])
{
    lbvh tree = {0};
    make_far_scene(s);
    CHECK_RESULT(lbvh_build(&tree, &s->desc, s->boxes, 0, s->n), LBVH_OK);
    if (improve == 1) CHECK_RESULT(lbvh_optimize(&tree, NULL), LBVH_OK);
    if (improve == 2) CHECK_RESULT(lbvh_split_top(&tree, NULL), LBVH_OK);
    CHECK_RESULT(lbvh_validate(&tree), LBVH_OK);
    mean_visits(&tree, s, visits);
    lbvh_free(&tree);
}

/* Clusters can only be so far apart that centres within them differ. */
static int clusters_differ(const far_scene *s)
{
    return s->of < TWO_CLUSTERS || s->distance * REAL_EPSILON * pow(s->n, 1.0 / s->desc.dim) < 0.01;
}

static void check_placings(far_scene *s, int improve)
{
    static const double distances[] = {1e3, 1e4, 1e7, 1e12, 1e30};
    double together[2], visits[2];
    int of, k;
    s->of = TOGETHER;
    visits_of(s, improve, together);
    for (of = ONE_FAR; of < PLACINGS; of++) for (k = 0; k < COUNT_OF(distances); k++) {
        if (share() > 1 && (of + k) % 3) continue;
        s->of = (placing)of;
        s->distance = distances[k];
        if (!clusters_differ(s)) continue;
        visits_of(s, improve, visits);
        if (visits[0] > 4 * together[0] || visits[1] > 4 * together[1])
            print_error("placing %d, distance %g, %dD, %d bits, builder %d: %g and %g nodes, not "
                        "%g and %g\n", of, s->distance, s->desc.dim, s->desc.bits,
                        (int)s->desc.builder, visits[0], visits[1], together[0], together[1]);
        CHECK(visits[0] <= 4 * together[0] && visits[1] <= 4 * together[1]);
    }
}

static void test_far_elements(void **state)
{
    far_scene s;
    int dim, bits, builder;
    (void)state;
    memset(&s, 0, sizeof s);
    s.n = share() > 1 ? 2000 : 20000;
    s.boxes = NEW(real, 6 * s.n);
    for (dim = 2; dim <= 3; dim++) for (bits = 30; bits <= 63; bits += 33)
        for (builder = 0; builder < 3; builder++) {
            s.desc.dim = dim;
            s.desc.bits = bits;
            s.desc.builder = (lbvh_builder)builder;
            s.edge = builder == 1 ? 1e-3 : 100;
            check_placings(&s, builder == LBVH_PLOC ? 0 : builder);
            if (builder == LBVH_MERGE) check_placings(&s, 2);
        }
    free(s.boxes);
}

/* All at one point, and many at a few points: no fault of the lattice, whose codes stay. */
static void test_few_points(void **state)
{
    int32_t const n = 3000;
    real *points = NEW(real, 3 * n);
    int32_t i, places;
    (void)state;
    for (places = 1; places <= 64; places *= 4) {
        lbvh tree = {0};
        lbvh_desc d;
        memset(&d, 0, sizeof d);
        d.kind = LBVH_POINTS;
        d.keep_codes = 1;
        for (i = 0; i < 3 * n; i++) points[i] = (real)(i / 3 % places * (1 + i % 3));
        CHECK_RESULT(lbvh_build(&tree, &d, points, 0, n), LBVH_OK);
        for (i = 0; i < n; i++) {
            const lbvh_node *leaf = &tree.node[tree.first_leaf + i];
            CHECK(tree.code[i] == lbvh_i_code(&tree.lattice, 3, 63, leaf->min, leaf->max));
        }
        lbvh_free(&tree);
    }
    free(points);
}
