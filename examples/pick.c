/* pick.c - a picture of a triangle mesh by casting rays through lbvh.h, and what is under a pixel of it.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how rays find triangles.

       1. build         a tree over the triangles of an indexed mesh (LBVH_TRIANGLES),
       2. closest hit   the walk hands out boxes, nearest first; each triangle found shortens the ray,
       3. any hit       for shadows the first triangle in the way ends the walk,
       4. pick          the same ray for one pixel, and what was hit there: face, edge or corner.

   How to run it:

       make build/pick && build/pick                   (from the top of the repository), or
       cc -O3 examples/pick.c -o pick -lassimp -lstb -lm
       ./pick bunny.obj --up y --turn 60 --pick 480 300 --out bunny.png
       ./pick --help

   Without a mesh it makes one, a torus knot of 100 thousand triangles. Meshes are read by assimp (Debian: libassimp-dev).

   What to look at: >>build, >>rays and >>pick below, 100 lines in all. */

#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty, mkdir */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <assimp/cimport.h>
#include <assimp/config.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <stb/stb_image_write.h>

#define LBVH_IMPLEMENTATION
#include "../lbvh.h"

typedef lbvh_real real;

typedef struct options {
    const char *mesh, *out;     /* mesh NULL: the knot */
    int32_t width, height, samples, triangles, pick[2], brute_force, y_is_up;
    double turn, tilt, zoom;
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
    fputs("pick: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *room_for(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) stop("out of memory (%.0f MB wanted)", (double)count * (double)bytes / 1e6);
    return memory;
}

static void help(void)
{
    puts("usage: pick [mesh] [options]\n\n"
         "Draws a mesh (STL, OBJ, or what else assimp reads) by casting rays through a tree. Options:\n\n"
         "  --out FILE       the picture (default build/pick.png)\n"
         "  --width N        of the picture (default 960)\n"
         "  --height N       (default 720)\n"
         "  --samples N      N x N rays for each pixel (default 2)\n"
         "  --turn DEGREES   walk around the mesh (default 30)\n"
         "  --tilt DEGREES   look from above (default 25)\n"
         "  --zoom F         magnify (default 1)\n"
         "  --up y           the mesh has y upwards (default: z)\n"
         "  --pick X Y       tell what is under that pixel, counted from the left and the top\n"
         "  --triangles N    without a mesh: of the torus knot (default 100000)\n"
         "  --brute-force    test every triangle instead of walking through the tree: the same picture, slowly\n"
         "  --help           this text");
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

static int32_t whole_number(const char *option, const char *text, double least, double most)
{
    double const value = number(option, text, least, most);
    if (value != floor(value)) stop("%s %s: a whole number is needed", option, text);
    return (int32_t)value;
}

static int y_or_z(const char *text)
{
    if (!text || (strcmp(text, "y") != 0 && strcmp(text, "z") != 0)) stop("--up must be followed by y or z");
    return *text == 'y';
}

/* Stores one option with its values, which `next` hands out. */
static void take_option(options *o, const char *name, char ***next)
{
    if (strcmp(name, "--out") == 0) { if (!(o->out = *++*next)) stop("--out needs a value (--help tells)"); }
    else if (strcmp(name, "--width") == 0) o->width = whole_number(name, *++*next, 1, 8192);
    else if (strcmp(name, "--height") == 0) o->height = whole_number(name, *++*next, 1, 8192);
    else if (strcmp(name, "--samples") == 0) o->samples = whole_number(name, *++*next, 1, 8);
    else if (strcmp(name, "--triangles") == 0) o->triangles = whole_number(name, *++*next, 100, 2e7);
    else if (strcmp(name, "--turn") == 0) o->turn = number(name, *++*next, -360, 360);
    else if (strcmp(name, "--tilt") == 0) o->tilt = number(name, *++*next, -89, 89);
    else if (strcmp(name, "--zoom") == 0) o->zoom = number(name, *++*next, 0.01, 1000);
    else if (strcmp(name, "--up") == 0) o->y_is_up = y_or_z(*++*next);
    else if (strcmp(name, "--brute-force") == 0) o->brute_force = 1;
    else if (strcmp(name, "--pick") == 0) {
        o->pick[0] = whole_number(name, *++*next, 0, 8191);
        o->pick[1] = whole_number(name, *++*next, 0, 8191);
    } else stop("unknown option %s (--help lists them)", name);
}

static options parse(char **argument)
{
    options o = {NULL, "build/pick.png", 960, 720, 2, 100000, {-1, -1}, 0, 0, 30, 25, 1};
    while (*++argument) {
        if (strcmp(*argument, "--help") == 0) help();
        else if (**argument == '-') take_option(&o, *argument, &argument);
        else if (o.mesh) stop("%s and %s: one mesh is enough", o.mesh, *argument);
        else o.mesh = *argument;
    }
    if (o.pick[0] >= o.width || o.pick[1] >= o.height)
        stop("--pick %ld %ld is outside of the picture: %ld x %ld pixels", (long)o.pick[0], (long)o.pick[1], (long)o.width,
             (long)o.height);
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>vectors
   ------------------------------------------------------------------------------------------------ */

typedef struct vec { real x[3]; } vec;

static vec vec_of(double x, double y, double z)
{
    vec v;
    v.x[0] = (real)x;
    v.x[1] = (real)y;
    v.x[2] = (real)z;
    return v;
}

/* a + t b */
static vec along(vec a, real t, vec b)
{
    int k;
    for (k = 0; k < 3; k++) a.x[k] += t * b.x[k];
    return a;
}

static vec minus(vec a, vec b) { return along(a, -1, b); }
static vec times(real t, vec a) { return along(vec_of(0, 0, 0), t, a); }
static vec mixed(vec a, vec b, double t) { return along(times((real)(1 - t), a), (real)t, b); }
static real dot(vec a, vec b) { return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2]; }
static real length(vec a) { return (real)sqrt((double)dot(a, a)); }

static vec cross(vec a, vec b)
{
    vec c;
    c.x[0] = a.x[1] * b.x[2] - a.x[2] * b.x[1];
    c.x[1] = a.x[2] * b.x[0] - a.x[0] * b.x[2];
    c.x[2] = a.x[0] * b.x[1] - a.x[1] * b.x[0];
    return c;
}

/* Length 1; a vector of length 0 stays what it is. */
static vec unit(vec a)
{
    real const size = length(a);
    return size > 0 ? times(1 / size, a) : a;
}

/* ------------------------------------------------------------------------------------------------
   >>mesh
   ------------------------------------------------------------------------------------------------ */

typedef struct mesh {
    vec *vertex;
    int32_t *index;     /* three for each triangle */
    int32_t vertices, triangles;
} mesh;

static mesh mesh_new(int64_t vertices, int64_t triangles)
{
    mesh m;
    if (vertices > INT32_MAX || triangles > INT32_MAX / 3) stop("the mesh is too large: %lld triangles", (long long)triangles);
    m.vertices = (int32_t)vertices;
    m.triangles = (int32_t)triangles;
    m.vertex = (vec *)room_for((size_t)vertices, sizeof *m.vertex);
    m.index = (int32_t *)room_for(3 * (size_t)triangles, sizeof *m.index);
    return m;
}

/* Before corners are joined: a NaN seems to be equal to all, and would be gone. */
static void refuse_not_finite(const struct aiScene *scene, const char *path)
{
    unsigned m, k;
    for (m = 0; m < scene->mNumMeshes; m++)
        for (k = 0; k < scene->mMeshes[m]->mNumVertices; k++) {
            const struct aiVector3D *v = &scene->mMeshes[m]->mVertices[k];
            if (!isfinite(v->x) || !isfinite(v->y) || !isfinite(v->z)) stop("%s: a corner is NaN or infinite", path);
        }
}

/* Positions and triangles are all that is wanted. Without normals, the corners that STL files repeat can be joined. */
static const struct aiScene *read_file(const char *path)
{
    struct aiPropertyStore *wishes = aiCreatePropertyStore();
    const struct aiScene *scene;
    aiSetImportPropertyInteger(wishes, AI_CONFIG_PP_RVC_FLAGS, aiComponent_NORMALS | aiComponent_TANGENTS_AND_BITANGENTS |
                               aiComponent_COLORS | aiComponent_TEXCOORDS | aiComponent_BONEWEIGHTS);
    aiSetImportPropertyInteger(wishes, AI_CONFIG_PP_SBP_REMOVE, aiPrimitiveType_POINT | aiPrimitiveType_LINE);
    scene = aiImportFileExWithProperties(path, aiProcess_Triangulate | aiProcess_SortByPType, NULL, wishes);
    aiReleasePropertyStore(wishes);
    if (scene) refuse_not_finite(scene, path);
    if (scene) scene = aiApplyPostProcessing(scene, aiProcess_RemoveComponent | aiProcess_JoinIdenticalVertices |
                                             aiProcess_PreTransformVertices);
    if (!scene) stop("%s: %s", path, aiGetErrorString());
    return scene;
}

/* Appends one of assimp's meshes. */
static void append(mesh *m, const struct aiMesh *from)
{
    unsigned k, corner;
    for (k = 0; k < from->mNumFaces; k++) {
        if (from->mFaces[k].mNumIndices != 3) continue;
        for (corner = 0; corner < 3; corner++)
            m->index[3 * (size_t)m->triangles + corner] = m->vertices + (int32_t)from->mFaces[k].mIndices[corner];
        m->triangles++;
    }
    for (k = 0; k < from->mNumVertices; k++)
        m->vertex[m->vertices++] = vec_of((double)from->mVertices[k].x, (double)from->mVertices[k].y, (double)from->mVertices[k].z);
}

static mesh load_mesh(const char *path, int y_is_up)
{
    const struct aiScene *scene = read_file(path);
    int64_t vertices = 0, triangles = 0;
    int32_t i;
    unsigned k;
    mesh m;
    for (k = 0; k < scene->mNumMeshes; k++) {
        vertices += scene->mMeshes[k]->mNumVertices;
        triangles += scene->mMeshes[k]->mNumFaces;
    }
    m = mesh_new(vertices, triangles);
    m.vertices = m.triangles = 0;
    for (k = 0; k < scene->mNumMeshes; k++) append(&m, scene->mMeshes[k]);
    aiReleaseImport(scene);
    if (m.triangles == 0) stop("%s: there are no triangles in it", path);
    for (i = 0; y_is_up && i < m.vertices; i++) {
        vec const v = m.vertex[i];
        m.vertex[i].x[1] = -v.x[2];
        m.vertex[i].x[2] = v.x[1];
    }
    return m;
}

/* The line in the middle of the knot: three times round the tube of a torus while going round it twice. */
static vec knot_line(double t) { return vec_of((2 + cos(3 * t)) * cos(2 * t), (2 + cos(3 * t)) * sin(2 * t), sin(3 * t)); }

/* A point of its skin: around the line at t, by the angle s, with ridges that wind. */
static vec knot_skin(double t, double s)
{
    vec const centre = knot_line(t), ahead = unit(minus(knot_line(t + 1e-3), knot_line(t - 1e-3)));
    vec const out = minus(centre, vec_of(2 * cos(2 * t), 2 * sin(2 * t), 0));
    vec const side = unit(cross(ahead, out)), normal = cross(side, ahead);
    double const radius = 0.45 + 0.035 * cos(6 * s + 20 * t);
    return along(along(centre, (real)(radius * cos(s)), normal), (real)(radius * sin(s)), side);
}

/* Rings of `around` corners each; between two of them pairs of triangles. */
static mesh make_knot(int32_t triangles)
{
    double const turn = 6.283185307179586;
    int32_t const around = (int32_t)(sqrt(triangles / 40.0) + 2), rings = triangles / (2 * around);
    mesh m = mesh_new((int64_t)rings * around, (int64_t)2 * rings * around);
    int32_t r, k;
    for (r = 0; r < rings; r++)
        for (k = 0; k < around; k++) {
            int32_t const next_r = (r + 1) % rings, next_k = (k + 1) % around;
            int32_t const a = r * around + k, b = next_r * around + k, c = next_r * around + next_k, d = r * around + next_k;
            int32_t const two[6] = {a, b, c, a, c, d};
            m.vertex[a] = knot_skin(turn * r / rings, turn * k / around);
            memcpy(m.index + 6 * (size_t)a, two, sizeof two);
        }
    return m;
}

static void mesh_free(mesh *m)
{
    free(m->vertex);
    free(m->index);
}

/* ------------------------------------------------------------------------------------------------
   >>build
   ------------------------------------------------------------------------------------------------ */

typedef struct scene {
    mesh m;
    lbvh tree;
    int brute_force;
    vec centre;
    real radius;        /* of a ball around everything */
    double build_ms;
} scene;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The tree borrows nothing: it keeps boxes and triangle numbers, and the mesh stays ours. */
static void build(scene *s)
{
    double const start = now();
    lbvh_result result;
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    desc.indices = s->m.index;
    desc.vertices = s->m.vertices;
    result = lbvh_build(&s->tree, &desc, s->m.vertex[0].x, sizeof(vec), s->m.triangles);
    if (result != LBVH_OK) stop("triangle %ld: %s", (long)s->tree.bad_id, lbvh_result_text(result));
    s->build_ms = 1e3 * (now() - start);
}

static scene scene_new(const options *o)
{
    scene s;
    vec low, high;
    int32_t i;
    memset(&s, 0, sizeof s);
    s.m = o->mesh ? load_mesh(o->mesh, o->y_is_up) : make_knot(o->triangles);
    s.brute_force = o->brute_force;
    build(&s);
    memcpy(low.x, s.tree.node[0].min, sizeof low.x); /* the root has the box around all */
    memcpy(high.x, s.tree.node[0].max, sizeof high.x);
    s.centre = along(times((real)0.5, low), (real)0.5, high);
    for (i = 0; i < 3 * s.m.triangles; i++) {
        real const away = length(minus(s.m.vertex[s.m.index[i]], s.centre));
        if (away > s.radius) s.radius = away;
    }
    if (!(s.radius > 0)) s.radius = 1;
    return s;
}

static vec corner(const scene *s, int32_t triangle, int k) { return s->m.vertex[s->m.index[3 * (size_t)triangle + (size_t)k]]; }

/* ------------------------------------------------------------------------------------------------
   >>rays
   ------------------------------------------------------------------------------------------------ */

typedef struct hit {
    int32_t id;         /* the triangle, or NOTHING */
    real t, u, v;       /* distance; weights of the second and third corner */
} hit;

enum { NOTHING = -1 };

/* Does the ray meet this triangle nearer than what it met before? Of two at the same distance, as on the edge between them, the
   one with the lower number counts, so that the picture does not depend on the order of the walk. */
static int improve(const scene *s, vec origin, vec direction, int32_t id, hit *best)
{
    vec const a = corner(s, id, 0), b = corner(s, id, 1), c = corner(s, id, 2);
    hit found;
    found.id = id;
    if (!lbvh_ray_triangle(origin.x, direction.x, a.x, b.x, c.x, &found.t, &found.u, &found.v) || !(found.t >= 0)) return 0;
    if (found.t > best->t || (found.t == best->t && id > best->id)) return 0;
    *best = found;
    return 1;
}

/* The walk goes on a little behind a hit: where two triangles share an edge, rounding may put the box of the other one there. */
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
    return lbvh_ray_triangle(origin.x, direction.x, a.x, b.x, c.x, &t, &u, &v) && t > (real)1e-4 * s->radius;
}

/* Is there anything on the way? The first triangle found ends the walk. Very near ones are those the ray starts on. */
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

/* ------------------------------------------------------------------------------------------------
   >>camera: far enough away to see the ball around the mesh, turned around it
   ------------------------------------------------------------------------------------------------ */

typedef struct camera {
    vec eye, ahead, right, up;
    vec sun;            /* towards the light: from behind the camera, on the left, above */
    real half[2];       /* half of the width and height of what is seen, at distance 1 */
    real pixel;         /* edge of a pixel at distance 1 */
} camera;

static camera camera_for(const options *o, const scene *s)
{
    double const degree = 3.14159265358979 / 180, view = tan(17.5 * degree), turn = o->turn * degree, tilt = o->tilt * degree;
    double const narrow = o->width < o->height ? view * o->width / o->height : view;
    double const distance = 1.02 * (double)s->radius / sin(atan(narrow));
    camera c;
    c.ahead = vec_of(-sin(turn) * cos(tilt), cos(turn) * cos(tilt), -sin(tilt));
    c.right = vec_of(cos(turn), sin(turn), 0);
    c.up = cross(c.right, c.ahead);
    c.eye = along(s->centre, (real)-distance, c.ahead);
    c.sun = unit(along(along(vec_of(0, 0, 0.9), (real)-0.55, c.right), (real)-0.35, c.ahead));
    c.half[0] = (real)(view / o->zoom * o->width / o->height);
    c.half[1] = (real)(view / o->zoom);
    c.pixel = 2 * c.half[1] / (real)o->height;
    return c;
}

/* Through a point of the picture, from (0, 0), its upper left corner, to (width, height). */
static vec sight(const camera *c, const options *o, double x, double y)
{
    vec const across = along(c->ahead, c->half[0] * (real)(2 * x / o->width - 1), c->right);
    return unit(along(across, c->half[1] * (real)(1 - 2 * y / o->height), c->up));
}

/* ------------------------------------------------------------------------------------------------
   >>shading: linear colors, turned into bytes at the end
   ------------------------------------------------------------------------------------------------ */

/* What one ray through the picture met. */
typedef struct sample {
    vec direction;
    hit on;
    vec at, normal;     /* the normal looks towards the eye */
    int solid;          /* the mesh or the floor, not the sky */
    int faces_sun, shaded;
} sample;

/* The floor lies under the mesh. */
static void meet_floor(const scene *s, const camera *c, sample *ray)
{
    real const down = s->tree.node[0].min[2] - c->eye.x[2], t = down / ray->direction.x[2];
    ray->solid = down < 0 && ray->direction.x[2] < 0;
    ray->normal = vec_of(0, 0, 1);
    if (ray->solid) ray->on.t = t;
}

static sample look(const scene *s, const camera *c, vec direction)
{
    sample ray;
    memset(&ray, 0, sizeof ray);
    ray.direction = direction;
    ray.on = closest_hit(s, c->eye, direction);
    if (ray.on.id != NOTHING) {
        vec const a = corner(s, ray.on.id, 0), n = cross(minus(corner(s, ray.on.id, 1), a), minus(corner(s, ray.on.id, 2), a));
        ray.normal = unit(dot(n, direction) > 0 ? times(-1, n) : n);
        ray.solid = 1;
    } else meet_floor(s, c, &ray);
    if (ray.solid) ray.at = along(c->eye, ray.on.t, direction);
    ray.faces_sun = ray.solid && dot(ray.normal, c->sun) > 0;
    return ray;
}

/* Light from the sun, unless something is in the way, and a little from everywhere, more from above. */
static vec lit(const camera *c, const sample *ray, vec color)
{
    double const sun = ray->faces_sun && !ray->shaded ? (double)dot(ray->normal, c->sun) : 0;
    vec const around = mixed(vec_of(0.16, 0.14, 0.13), vec_of(0.25, 0.29, 0.37), 0.5 + 0.5 * (double)ray->normal.x[2]);
    vec const light = along(around, (real)sun, vec_of(0.92, 0.85, 0.74));
    int k;
    for (k = 0; k < 3; k++) color.x[k] *= light.x[k];
    return color;
}

static vec color_of(const scene *s, const camera *c, const sample *ray, int32_t picked)
{
    double const upwards = ray->direction.x[2] > 0 ? (double)ray->direction.x[2] : 0;
    vec const sky = mixed(vec_of(0.66, 0.75, 0.84), vec_of(0.22, 0.36, 0.58), upwards);
    double away;
    if (!ray->solid) return sky;
    if (ray->on.id != NOTHING) return lit(c, ray, ray->on.id == picked ? vec_of(0.02, 0.25, 1) : vec_of(0.86, 0.36, 0.13));
    away = (double)(length(minus(ray->at, s->centre)) / s->radius) / 7; /* the floor fades into the sky */
    return mixed(lit(c, ray, vec_of(0.56, 0.58, 0.60)), sky, away < 1 ? away * away : 1);
}

static unsigned char byte_of(real level)
{
    double const shown = pow(level > 0 ? (double)level : 0, 1 / 2.2);
    return (unsigned char)(shown < 1 ? 255 * shown + 0.5 : 255);
}

/* ------------------------------------------------------------------------------------------------
   >>pick
   ------------------------------------------------------------------------------------------------ */

/* A hit is never exactly on an edge, but a finger means one that is near. So the triangle is shrunk, by `reach` on each side but at
   most by half, and it tells which of its parts is closest to the point: outside of it the point belongs to an edge or a corner.

                         C
                        / \
                       / c \           p is closest to the edge a b: meant is the edge AB
                      / / \ \
                     / a---b \
                    A----p----B  */
static lbvh_feature feature_near(const scene *s, int32_t id, vec p, real reach)
{
    vec const a = corner(s, id, 0), b = corner(s, id, 1), c = corner(s, id, 2);
    real const bc = length(minus(c, b)), ca = length(minus(a, c)), ab = length(minus(b, a)), around = bc + ca + ab;
    vec const middle = times(1 / around, along(along(times(bc, a), ca, b), ab, c)); /* of the circle that touches all three edges */
    double const circle = (double)(length(cross(minus(b, a), minus(c, a))) / around);
    double const shrink = (double)reach < circle / 2 ? (double)reach / circle : 0.5;
    vec const in_a = mixed(a, middle, shrink), in_b = mixed(b, middle, shrink), in_c = mixed(c, middle, shrink);
    vec q;
    return lbvh_closest_on_triangle(p.x, in_a.x, in_b.x, in_c.x, q.x);
}

static void say_feature(const scene *s, int32_t id, lbvh_feature feature)
{
    static const char *const names[] = {"face", "edge ab", "edge bc", "edge ca", "vertex a", "vertex b", "vertex c"};
    const int32_t *v = s->m.index + 3 * (size_t)id;
    printf("           feature: %s of the vertices a %ld, b %ld, c %ld\n", names[feature], (long)v[0], (long)v[1], (long)v[2]);
}

/* What is under the middle of a pixel? Returns the triangle, or NOTHING. */
static int32_t pick(const scene *s, const camera *c, const options *o)
{
    sample ray;
    if (o->pick[0] < 0) return NOTHING;
    ray = look(s, c, sight(c, o, o->pick[0] + 0.5, o->pick[1] + 0.5));
    printf("pick       pixel %ld %ld: ", (long)o->pick[0], (long)o->pick[1]);
    if (ray.on.id == NOTHING) {
        puts("nothing there");
        return NOTHING;
    }
    printf("triangle %ld at distance %.6g\n", (long)ray.on.id, (double)ray.on.t);
    printf("           point %.6g %.6g %.6g", (double)ray.at.x[0], (double)ray.at.x[1], (double)ray.at.x[2]);
    printf(", weights a %.4f b %.4f c %.4f\n", 1 - (double)ray.on.u - (double)ray.on.v, (double)ray.on.u, (double)ray.on.v);
    say_feature(s, ray.on.id, feature_near(s, ray.on.id, ray.at, 3 * c->pixel * ray.on.t)); /* 3 pixels */
    return ray.on.id;
}

/* ------------------------------------------------------------------------------------------------
   >>picture
   ------------------------------------------------------------------------------------------------ */

typedef struct figures {
    int64_t rays, hits, shadow_rays, shadows;
    double seconds, shadow_seconds;
    uint64_t checksum;  /* of the triangles hit, in the order of the rays (FNV-1a) */
    double closest;
} figures;

static void count_hit(figures *f, const hit *on)
{
    f->checksum = (f->checksum ^ (uint32_t)on->id) * UINT64_C(0x100000001b3);
    f->rays++;
    if (on->id == NOTHING) return;
    f->hits++;
    if (f->hits == 1 || (double)on->t < f->closest) f->closest = (double)on->t;
}

/* All rays of one row of pixels, pixel after pixel; then all their shadow rays. Each is timed by itself. */
static void cast_row(const scene *s, const camera *c, const options *o, int32_t y, sample *row, figures *f)
{
    int32_t const each = o->samples * o->samples, count = o->width * each;
    double const start = now();
    double primary;
    int32_t k;
    for (k = 0; k < count; k++) {
        double const in_x = (k % each % o->samples + 0.5) / o->samples, in_y = (k % each / o->samples + 0.5) / o->samples;
        row[k] = look(s, c, sight(c, o, k / each + in_x, y + in_y));
    }
    primary = now();
    for (k = 0; k < count; k++) {
        if (!row[k].faces_sun) continue;
        row[k].shaded = any_hit(s, row[k].at, c->sun);
        f->shadow_rays++;
        f->shadows += row[k].shaded;
    }
    f->shadow_seconds += now() - primary;
    f->seconds += primary - start;
    for (k = 0; k < count; k++) count_hit(f, &row[k].on);
}

/* Each pixel is the average of its samples. */
static void shade_row(const scene *s, const camera *c, const options *o, const sample *row, int32_t picked, unsigned char *rgb)
{
    int32_t const each = o->samples * o->samples;
    int32_t x, k;
    for (x = 0; x < o->width; x++) {
        vec color = vec_of(0, 0, 0);
        for (k = 0; k < each; k++) color = along(color, 1 / (real)each, color_of(s, c, &row[x * each + k], picked));
        for (k = 0; k < 3; k++) rgb[3 * x + k] = byte_of(color.x[k]);
    }
}

/* On a terminal a bar that moves, else a line for each quarter. */
static void show_progress(int32_t done, int32_t all)
{
    static const char bar[] = "========================================";
    int const part = (int)((int64_t)40 * done / all);
    if (isatty(2)) fprintf(stderr, "\r[%-40.*s] row %ld of %ld%s", part, bar, (long)done, (long)all, done == all ? "\n" : "");
    else if ((int64_t)4 * done / all != (int64_t)4 * (done - 1) / all) fprintf(stderr, "row %ld of %ld\n", (long)done, (long)all);
}

/* A ring around the pixel that was picked. */
static void mark_pixel(const options *o, unsigned char *rgb)
{
    int32_t x, y;
    for (y = 0; o->pick[0] >= 0 && y < o->height; y++)
        for (x = 0; x < o->width; x++) {
            double const away = hypot(x - o->pick[0], y - o->pick[1]);
            if (away > 10 && away < 14) memset(rgb + 3 * ((size_t)y * (size_t)o->width + (size_t)x), away < 12 ? 255 : 0, 3);
        }
}

static unsigned char *draw(const scene *s, const camera *c, const options *o, int32_t picked, figures *f)
{
    unsigned char *rgb = (unsigned char *)room_for((size_t)o->width * (size_t)o->height, 3);
    sample *row = (sample *)room_for((size_t)o->width * (size_t)(o->samples * o->samples), sizeof *row);
    int32_t y;
    memset(f, 0, sizeof *f);
    f->checksum = UINT64_C(0xcbf29ce484222325);
    for (y = 0; y < o->height; y++) {
        cast_row(s, c, o, y, row, f);
        shade_row(s, c, o, row, picked, rgb + 3 * (size_t)y * (size_t)o->width);
        show_progress(y + 1, o->height);
    }
    mark_pixel(o, rgb);
    free(row);
    return rgb;
}

/* Makes all folders of a path but the last part. */
static void make_folders(const char *path)
{
    char part[1024];
    size_t k;
    for (k = 1; path[k - 1] && path[k]; k++) {
        if (path[k] != '/') continue;
        if (k >= sizeof part) stop("--out: the name is too long");
        memcpy(part, path, k);
        part[k] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) stop("%s: %s", part, strerror(errno));
    }
}

static void put_bytes(void *file, void *bytes, int count) { fwrite(bytes, 1, (size_t)count, (FILE *)file); }

static void save(const options *o, unsigned char *rgb)
{
    FILE *file;
    make_folders(o->out);
    file = fopen(o->out, "wb");
    if (!file) stop("%s: %s", o->out, strerror(errno));
    if (!stbi_write_png_to_func(put_bytes, file, o->width, o->height, 3, rgb, 3 * o->width)) stop("%s: out of memory", o->out);
    if (ferror(file) | fclose(file)) stop("%s: could not be written: %s", o->out, strerror(errno));
}

/* ------------------------------------------------------------------------------------------------
   >>main
   ------------------------------------------------------------------------------------------------ */

static void say_tree(const scene *s, const options *o)
{
    lbvh_quality q;
    if (lbvh_measure(&s->tree, &q) != LBVH_OK) stop("the tree cannot be measured");
    printf("mesh       %s: %ld triangles, %ld vertices\n", o->mesh ? o->mesh : "a torus knot", (long)s->m.triangles,
           (long)s->m.vertices);
    printf("tree       built in %.1f ms, %.1f MB, depth %ld (%.1f on average), SAH cost %.1f\n", s->build_ms,
           (double)lbvh_bytes(&s->tree) / 1e6, (long)q.depth, q.mean_depth, q.sah);
}

static void say_rays(const char *what, int64_t rays, double seconds, int64_t hits, const char *met)
{
    printf("%-10s %lld rays, %.2f Mrays/s, %.0f %% %s\n", what, (long long)rays, 1e-6 * (double)rays / (seconds + 1e-9),
           100 * (double)hits / (double)(rays ? rays : 1), met);
}

int main(int argc, char **argv)
{
    options const o = parse(argv);
    scene s = scene_new(&o);
    camera const c = camera_for(&o, &s);
    unsigned char *rgb;
    int32_t picked;
    figures f;
    (void)argc;
    say_tree(&s, &o);
    picked = pick(&s, &c, &o);
    rgb = draw(&s, &c, &o, picked, &f);
    save(&o, rgb);
    say_rays("primary", f.rays, f.seconds, f.hits, "hit");
    say_rays("shadow", f.shadow_rays, f.shadow_seconds, f.shadows, "blocked");
    printf("picture    %s\n", o.out);
    printf("figures: triangles %ld rays %lld hits %lld shadows %lld checksum %016llx closest %.6f\n", (long)s.m.triangles,
           (long long)f.rays, (long long)f.hits, (long long)f.shadows, (unsigned long long)f.checksum, f.closest);
    free(rgb);
    lbvh_free(&s.tree);
    mesh_free(&s.m);
    return 0;
}
