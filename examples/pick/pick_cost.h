/* pick_cost.h - what a ray visits. pick --pick: the boxes and triangles tested for one ray. pick
   --cost: what a frame costs by each builder, in the binary tree and in the wide one: milliseconds,
   and boxes tested for each ray, which are the colors of the picture.
   SPDX-License-Identifier: MIT OR Unlicense

   The panels: a row for each builder; on the left the binary tree, on the right the wide one. From
   blue over yellow to red: 0, 60 and 120 boxes.

   A ray must test the boxes below every node that it enters before its hit: 2 for a node of the
   binary tree, as many as it has children for a wide one. count_binary and count_wide walk in any
   order, since the hit is known. The times are those of the header's own searches. */

#ifndef PICK_COST_H
#define PICK_COST_H

static const struct {
    const char *name;
    lbvh_builder builder;
} builders[] = {{"MERGE", LBVH_MERGE}, {"SPLIT", LBVH_SPLIT}, {"PLOC", LBVH_PLOC}};

enum { BUILDERS = sizeof builders / sizeof builders[0] };

/* Does the ray enter a box before t? */
static int enters(vec origin, vec direction, const real *min, const real *max, real t)
{
    double begin = 0, end = (double)t;
    int a;
    for (a = 0; a < 3; a++) {
        double const down = ((double)min[a] - (double)origin.x[a]) / (double)direction.x[a],
                     up = ((double)max[a] - (double)origin.x[a]) / (double)direction.x[a];
        begin = fmax(begin, fmin(down, up));
        end = fmin(end, fmax(down, up));
    }
    return begin <= end;
}

static int count_binary(const lbvh *tree, int32_t at, vec origin, vec direction, real t)
{
    const lbvh_node *node = &tree->node[at];
    if (lbvh_is_leaf(tree, at) || !enters(origin, direction, node->min, node->max, t)) return 0;
    return 2 + count_binary(tree, node->link, origin, direction, t) +
           count_binary(tree, lbvh_right_child(tree, node), origin, direction, t);
}

/* Of the ray that was picked; its walk takes the nearest boxes first. All others lie off its way,
   or behind what it hits. */
static void say_visited(const scene *s, const camera *c, const options *o)
{
    vec const direction = sight(c, o, o->pick[0] + 0.5, o->pick[1] + 0.5);
    hit best = {NOTHING, (real)INFINITY, 0, 0};
    lbvh_ray ray = lbvh_ray_cast(&s->tree, c->eye.x, direction.x, best.t);
    int32_t triangles = 0, boxes;
    for (; lbvh_next_ray(&ray); triangles++)
        if (improve(s, c->eye, direction, ray.id, &best)) ray.t_max = best.t * (real)1.00001;
    boxes = count_binary(&s->tree, lbvh_root(&s->tree), c->eye, direction, ray.t_max);
    printf("visited    %ld of %ld boxes, %ld of %ld triangles\n", (long)boxes + 1,
           2 * (long)s->m.triangles - 1, (long)triangles, (long)s->m.triangles);
}

/* A side of a child's box: a whole number of quanta, which are powers of two. */
static real side(const lbvh_wide_node *node, int row, int c)
{
    double const quanta = (double)node->corner[row % 3] + node->plane[row][c];
    int const bias = sizeof(real) == sizeof(float) ? 127 : 1023;
    return (real)ldexp(quanta, (int)node->exponent[row % 3] - bias);
}

/* The boxes below a wide node that the ray enters, and so on. */
static int count_wide(const lbvh_wide *wide, uint32_t at, vec origin, vec direction, real t)
{
    const lbvh_wide_node *node = &wide->node[at];
    int c, a, count = 0;
    for (c = 0; c < LBVH_WIDE; c++) {
        real min[3], max[3];
        if (node->kind[c] == 0) continue;
        count++;
        if (node->kind[c] < 224) continue; /* a leaf; else 224 + its number among inner children */
        for (a = 0; a < 3; a++) min[a] = side(node, a, c), max[a] = side(node, a + 3, c);
        if (enters(origin, direction, min, max, t))
            count += count_wide(wide, node->child + (node->kind[c] - 224u), origin, direction, t);
    }
    return count;
}

/* A frame: a ray for each pixel of a panel, and what they hit. */
typedef struct frame {
    int32_t width, height;
    lbvh_rays rays;
    vec *ray;               /* origin and direction of each */
    lbvh_ray_hit *hits;
} frame;

static frame frame_new(const camera *c, const options *o)
{
    frame f;
    int32_t x, y;
    memset(&f, 0, sizeof f);
    f.width = o->width / 2 > 0 ? o->width / 2 : 1;
    f.height = o->height / 2 > 0 ? o->height / 2 : 1;
    f.rays.n = f.width * f.height;
    f.ray = (vec *)zeros(2 * (size_t)f.rays.n, sizeof *f.ray);
    f.hits = (lbvh_ray_hit *)zeros((size_t)f.rays.n, sizeof *f.hits);
    for (y = 0; y < f.height; y++)
        for (x = 0; x < f.width; x++) {
            size_t const r = (size_t)y * (size_t)f.width + (size_t)x;
            f.ray[2 * r] = c->eye;
            f.ray[2 * r + 1] = sight(c, o, 2 * x + 1, 2 * y + 1);
        }
    f.rays.data = f.ray[0].x;
    f.rays.stride = 2 * sizeof(vec);
    f.rays.flags = LBVH_SORTED;
    return f;
}

/* One panel: `wide` NULL: the binary tree. */
static void draw_cost(const scene *s, const lbvh_wide *wide, const frame *f, picture *p,
                      int32_t left, int32_t top, int64_t *boxes)
{
    int32_t x, y;
    for (y = 0; y < f->height; y++)
        for (x = 0; x < f->width; x++) {
            size_t const r = (size_t)y * (size_t)f->width + (size_t)x;
            vec const from = f->ray[2 * r], along = f->ray[2 * r + 1];
            real const t = f->hits[r].id < 0 ? (real)1e30 : f->hits[r].t;
            int const count = wide ? count_wide(wide, 0, from, along, t)
                                   : count_binary(&s->tree, 0, from, along, t);
            double const level = count / 120.0, red = fmin(1, 2 * level),
                         green = level < 0.5 ? 1.5 * level : fmax(0, 1.5 - 1.5 * level);
            unsigned char *to = p->rgb + 3 * ((size_t)(top + y) * (size_t)(2 * f->width) +
                                              (size_t)(left + x));
            *boxes += count;
            to[0] = byte_of((real)red);
            to[1] = byte_of((real)green);
            to[2] = byte_of((real)fmax(0, 0.5 - level));
        }
}

/* What a panel shows, in its upper left corner. */
static void name_panel(picture *p, const frame *f, int32_t left, int32_t top, const char *builder,
                       const char *tree, int64_t boxes)
{
    char text[80];
    snprintf(text, sizeof text, "%s, %s: %.1f boxes a ray", builder, tree,
             (double)boxes / (double)f->rays.n);
    picture_clip(p, left, top, left + f->width, top + f->height);
    draw_text(p, left + 10, top + 10, 2, gray(1), text);
    draw_text(p, left + 10, top + 28, 2, gray(1), "blue: 0, yellow: 60, red: 120");
    picture_clip(p, 0, 0, p->width, p->height);
}

/* Closest hits by the walk of the binary tree, ray by ray; the same as those of the wide one? */
static int64_t walk_binary(const scene *s, const frame *f)
{
    int64_t differ = 0;
    int32_t r;
    for (r = 0; r < f->rays.n; r++) {
        hit const best = closest_hit(s, f->ray[2 * r], f->ray[2 * r + 1]);
        differ += best.id != (f->hits[r].id < 0 ? NOTHING : f->hits[r].id);
    }
    return differ;
}

static void say_cost(const char *builder, const char *tree, double build_ms, double frame_ms,
                     int64_t boxes, int32_t rays)
{
    printf("%-10s %-6s built in %.1f ms, a frame in %.1f ms, %.1f boxes a ray\n", builder, tree,
           build_ms, frame_ms, (double)boxes / (double)rays);
}

/* Both rows of one builder; its trees are built here. */
static void compare_builder(scene *s, int b, frame *f, picture *p)
{
    real const *const triangles = s->m.vertex[0].x;
    lbvh_wide wide;
    lbvh_wide_desc desc;
    int64_t boxes[2] = {0, 0}, differ;
    double start, times[3];
    memset(&wide, 0, sizeof wide);
    memset(&desc, 0, sizeof desc);
    desc.copy = 1;
    build(s, builders[b].builder);
    start = seconds_now();
    MUST(lbvh, lbvh_wide_build(&wide, &desc, &s->tree, triangles, sizeof(vec)), "the wide tree");
    times[0] = seconds_now();
    MUST(lbvh, lbvh_closest_hits(&wide, &f->rays, NULL, NULL, f->hits), "rays");
    times[1] = seconds_now();
    differ = walk_binary(s, f);
    times[2] = seconds_now();
    if (differ) stop(1, "%ld rays hit something else in the wide tree", (long)differ);
    draw_cost(s, NULL, f, p, 0, b * f->height, &boxes[0]);
    draw_cost(s, &wide, f, p, f->width, b * f->height, &boxes[1]);
    name_panel(p, f, 0, b * f->height, builders[b].name, "binary", boxes[0]);
    name_panel(p, f, f->width, b * f->height, builders[b].name, "wide", boxes[1]);
    say_cost(builders[b].name, "binary", s->build_ms, 1e3 * (times[2] - times[1]), boxes[0],
             f->rays.n);
    say_cost(builders[b].name, "wide", s->build_ms + 1e3 * (times[0] - start),
             1e3 * (times[1] - times[0]), boxes[1], f->rays.n);
    lbvh_wide_free(&wide);
}

static void compare_costs(scene *s, const camera *c, const options *o)
{
    frame f = frame_new(c, o);
    picture p = picture_new(2 * f.width, BUILDERS * f.height, gray(0));
    int b;
    for (b = 0; b < BUILDERS; b++) compare_builder(s, b, &f, &p);
    picture_save(&p, o->out);
    printf("picture    %s\n", o->out);
    picture_free(&p);
    free(f.ray);
    free(f.hits);
}

#endif /* PICK_COST_H */
