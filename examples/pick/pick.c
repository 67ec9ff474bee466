/* pick.c - draws a triangle mesh by casting rays through lbvh.h, and tells what is under a pixel.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how rays find triangles.

       1. build         a tree over the triangles of an indexed mesh (LBVH_TRIANGLES),
       2. closest hit   the walk gives boxes, nearest first; each triangle found shortens the ray,
       3. any hit       for shadows the first triangle in the way ends the walk,
       4. pick          the same ray for one pixel, and what was hit there: face, edge or corner,
       5. cost          --cost: what a frame takes by each builder, and in the wide tree.

   How to run it:

       make build/pick && build/pick                   (from the top of the repository), or
       cc -O3 examples/pick/pick.c -o pick -lassimp -lstb -lm
       ./pick bunny.obj --up y --turn 60 --pick 480 300 --out bunny.png
       ./pick --cost --out cost.png

   Without a mesh it makes one, a torus knot of 100 thousand triangles. assimp reads meshes.

   What to look at: >>build, >>rays and >>pick below; pick_cost.h. Meshes and camera: pick.h. */

#define PROGRAM "pick"
#include "../common/base.h"

#define LBVH_WITH_WIDE /* more/lbvh_wide.h: trees of eight children */
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"

#include "pick.h"

/* -------------------------------------------------------------------------------------------------
   >>build
   ---------------------------------------------------------------------------------------------- */

/* The tree borrows nothing: it keeps boxes and triangle numbers, and the mesh stays ours. */
static void build(scene *s, lbvh_builder builder)
{
    double const start = seconds_now();
    lbvh_result result;
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    desc.builder = builder;
    desc.indices = s->m.index;
    desc.vertices = s->m.vertices;
    result = lbvh_build(&s->tree, &desc, s->m.vertex[0].x, sizeof(vec), s->m.triangles);
    if (result != LBVH_OK)
        stop(1, "triangle %ld: %s", (long)s->tree.bad_id, lbvh_result_text(result));
    s->build_ms = 1e3 * (seconds_now() - start);
}

static scene scene_new(const options *o)
{
    scene s;
    memset(&s, 0, sizeof s);
    s.m = o->mesh ? load_mesh(o->mesh, o->up) : make_knot(o->triangles);
    s.brute_force = o->brute_force;
    build(&s, LBVH_MERGE);
    find_ball(&s);
    return s;
}

/* -------------------------------------------------------------------------------------------------
   >>rays
   ---------------------------------------------------------------------------------------------- */

/* Does the ray meet this triangle nearer than what it met before? Of two at the same distance,
   as on the edge between them, the one with the lower number counts, so that the picture does
   not depend on the order of the walk. */
static int improve(const scene *s, vec origin, vec direction, int32_t id, hit *best)
{
    vec const a = corner(s, id, 0), b = corner(s, id, 1), c = corner(s, id, 2);
    hit found;
    found.id = id;
    if (!lbvh_ray_triangle(origin.x, direction.x, a.x, b.x, c.x, &found.t, &found.u, &found.v) ||
        !(found.t >= 0))
        return 0;
    if (found.t > best->t || (found.t == best->t && id > best->id)) return 0;
    *best = found;
    return 1;
}

/* The walk goes on a little behind a hit: where two triangles share an edge, rounding may put
   the box of the other one there. */
static hit closest_hit(const scene *s, vec origin, vec direction)
{
    hit best = {NOTHING, (real)INFINITY, 0, 0};
    lbvh_ray ray = lbvh_ray_cast(&s->tree, origin.x, direction.x, best.t);
    int32_t id;
    if (s->brute_force) {
        for (id = 0; id < s->m.triangles; id++) improve(s, origin, direction, id, &best);
        return best;
    }
    while (lbvh_next_ray(&ray))
        if (improve(s, origin, direction, ray.id, &best)) ray.t_max = best.t * (real)1.00001;
    return best;
}

static int blocks(const scene *s, vec origin, vec direction, int32_t id)
{
    vec const a = corner(s, id, 0), b = corner(s, id, 1), c = corner(s, id, 2);
    real t, u, v;
    return lbvh_ray_triangle(origin.x, direction.x, a.x, b.x, c.x, &t, &u, &v) &&
           t > (real)1e-4 * s->radius;
}

/* Is there anything on the way? The first triangle found ends the walk. Very near ones are those
   the ray starts on. */
static int any_hit(const scene *s, vec origin, vec direction)
{
    lbvh_ray ray = lbvh_ray_cast(&s->tree, origin.x, direction.x, (real)INFINITY);
    int32_t id;
    if (s->brute_force) {
        for (id = 0; id < s->m.triangles; id++) if (blocks(s, origin, direction, id)) return 1;
        return 0;
    }
    while (lbvh_next_ray(&ray)) if (blocks(s, origin, direction, ray.id)) return 1;
    return 0;
}

/* What a ray of the picture meets. */
static sample look(const scene *s, const camera *c, vec direction)
{
    sample ray;
    memset(&ray, 0, sizeof ray);
    ray.direction = direction;
    ray.on = closest_hit(s, c->eye, direction);
    if (ray.on.id != NOTHING) {
        vec const a = corner(s, ray.on.id, 0),
                  n = cross(minus(corner(s, ray.on.id, 1), a), minus(corner(s, ray.on.id, 2), a));
        ray.normal = unit(dot(n, direction) > 0 ? times(-1, n) : n);
        ray.solid = 1;
    } else meet_floor(s, c, &ray);
    if (ray.solid) ray.at = along(c->eye, ray.on.t, direction);
    ray.faces_sun = ray.solid && dot(ray.normal, c->sun) > 0;
    return ray;
}

/* -------------------------------------------------------------------------------------------------
   >>pick
   ---------------------------------------------------------------------------------------------- */

/* A hit is never exactly on an edge, but a finger means one that is near. So the triangle is
   shrunk, by `reach` on each side but at most by half, and it tells which of its parts is closest
   to the point: outside of it the point belongs to an edge or a corner.

                         C
                        / \
                       / c \           p is closest to the edge a b: meant is the edge AB
                      / / \ \
                     / a---b \
                    A----p----B  */
static lbvh_feature feature_near(const scene *s, int32_t id, vec p, real reach)
{
    vec const a = corner(s, id, 0), b = corner(s, id, 1), c = corner(s, id, 2);
    real const bc = length(minus(c, b)), ca = length(minus(a, c)), ab = length(minus(b, a)),
               around = bc + ca + ab;
    /* of the circle that touches all three edges */
    vec const middle = times(1 / around, along(along(times(bc, a), ca, b), ab, c));
    double const circle = (double)(length(cross(minus(b, a), minus(c, a))) / around);
    double const shrink = (double)reach < circle / 2 ? (double)reach / circle : 0.5;
    vec const in_a = between(a, middle, shrink), in_b = between(b, middle, shrink),
              in_c = between(c, middle, shrink);
    vec q;
    return lbvh_closest_on_triangle(p.x, in_a.x, in_b.x, in_c.x, q.x);
}

/* What is under the middle of a pixel? Near an edge: within 3 pixels. Returns the triangle, or
   NOTHING. */
static int32_t pick(const scene *s, const camera *c, const options *o)
{
    lbvh_feature feature;
    sample ray;
    if (o->pick[0] < 0) return NOTHING;
    ray = look(s, c, sight(c, o, o->pick[0] + 0.5, o->pick[1] + 0.5));
    if (ray.on.id == NOTHING) return say_nothing(o);
    feature = feature_near(s, ray.on.id, ray.at, 3 * c->pixel * ray.on.t);
    say_picked(s, o, &ray, feature);
    return ray.on.id;
}

#include "pick_draw.h"
#include "pick_cost.h"

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    scene s = scene_new(&o);
    camera const c = camera_for(&o, &s);
    int32_t picked;
    say_tree(&s, &o);
    picked = pick(&s, &c, &o);
    if (o.pick[0] >= 0 && !o.brute_force) say_visited(&s, &c, &o);
    if (o.cost) compare_costs(&s, &c, &o);
    else draw_mesh(&s, &c, &o, picked);
    lbvh_free(&s.tree);
    mesh_free(&s.m);
    return 0;
}
