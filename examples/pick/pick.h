/* pick.h - what pick.c needs besides trees and rays: options, meshes by assimp, the camera, and the
   colors of what rays met.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PICK_H
#define PICK_H

#include <assimp/cimport.h>
#include <assimp/config.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>

#define VEC_REAL lbvh_real
#include "../common/options.h"
#include "../common/picture.h"
#include "../common/progress.h"
#include "vec.h"

typedef struct options {
    const char *mesh, *out;     /* mesh NULL: the knot */
    int32_t width, height, samples, triangles, pick[2], brute_force, cost;
    double turn, tilt, zoom;
    const char *up;
} options;

static options parse(int argc, char **argv)
{
    options o = {NULL, "build/pick.png", 960, 720, 2, 100000, {-1, -1}, 0, 0, 30, 25, 1, "z"};
    const option_line table[] = {
        TEXT("--out", "FILE", &o.out, "the picture (default build/pick.png)"),
        INT("--width", "N", &o.width, 1, 8192, "of the picture (default 960)"),
        INT("--height", "N", &o.height, 1, 8192, "(default 720)"),
        INT("--samples", "N", &o.samples, 1, 8, "N x N rays for each pixel (default 2)"),
        DOUBLE("--turn", "DEGREES", &o.turn, -360, 360, "walk around the mesh (default 30)"),
        DOUBLE("--tilt", "DEGREES", &o.tilt, -89, 89, "look from above (default 25)"),
        DOUBLE("--zoom", "F", &o.zoom, 0.01, 1000, "magnify (default 1)"),
        TEXT("--up", "y|z", &o.up, "the axis of the mesh that points up (default z)"),
        INT("--pick", "X Y", o.pick, 0, 8191,
            "tell what is under that pixel, from the left and the top"),
        INT("--triangles", "N", &o.triangles, 100, 2e7,
            "of the torus knot, without a mesh (default 100000)"),
        FLAG("--brute-force", &o.brute_force,
             "test every triangle instead of walking through the tree"),
        FLAG("--cost", &o.cost,
             "draw the boxes tested for each ray, by each builder, in both kinds of tree"),
        OPTIONS_END};
    o.mesh = options_read(argc, argv, table, "mesh",
                          "Draws a mesh (STL, OBJ, or what else assimp reads) by casting rays.",
                          "bunny.obj --up y --turn 60 --pick 480 300");
    if (strcmp(o.up, "y") != 0 && strcmp(o.up, "z") != 0)
        stop(2, "--up %s: y or z is needed", o.up);
    if (o.pick[0] >= o.width || o.pick[1] >= o.height)
        stop(2, "--pick %ld %ld is outside of the picture", (long)o.pick[0], (long)o.pick[1]);
    return o;
}

/* -------------------------------------------------------------------------------------------------
   >>mesh
   ---------------------------------------------------------------------------------------------- */

typedef struct mesh {
    vec *vertex;
    int32_t *index;     /* three for each triangle */
    int32_t vertices, triangles;
} mesh;

static mesh mesh_new(int64_t vertices, int64_t triangles)
{
    mesh m;
    if (vertices > INT32_MAX || triangles > INT32_MAX / 3)
        stop(1, "the mesh is too large: %lld triangles", (long long)triangles);
    m.vertices = (int32_t)vertices;
    m.triangles = (int32_t)triangles;
    m.vertex = (vec *)zeros((size_t)vertices, sizeof *m.vertex);
    m.index = (int32_t *)zeros(3 * (size_t)triangles, sizeof *m.index);
    return m;
}

/* Before corners are joined: a NaN seems to be equal to all, and would be gone. */
static void refuse_not_finite(const struct aiScene *scene, const char *path)
{
    unsigned m, k;
    for (m = 0; m < scene->mNumMeshes; m++)
        for (k = 0; k < scene->mMeshes[m]->mNumVertices; k++) {
            const struct aiVector3D *v = &scene->mMeshes[m]->mVertices[k];
            if (!isfinite(v->x) || !isfinite(v->y) || !isfinite(v->z))
                stop(1, "%s: a corner is NaN or infinite", path);
        }
}

/* Positions and triangles are all that is wanted. Without normals, the corners that STL files
   repeat can be joined. */
static const struct aiScene *read_file(const char *path)
{
    struct aiPropertyStore *wishes = aiCreatePropertyStore();
    const struct aiScene *scene;
    aiSetImportPropertyInteger(wishes, AI_CONFIG_PP_RVC_FLAGS,
                               aiComponent_NORMALS | aiComponent_TANGENTS_AND_BITANGENTS |
                                   aiComponent_COLORS | aiComponent_TEXCOORDS |
                                   aiComponent_BONEWEIGHTS);
    aiSetImportPropertyInteger(wishes, AI_CONFIG_PP_SBP_REMOVE,
                               aiPrimitiveType_POINT | aiPrimitiveType_LINE);
    scene = aiImportFileExWithProperties(path, aiProcess_Triangulate | aiProcess_SortByPType, NULL,
                                         wishes);
    aiReleasePropertyStore(wishes);
    if (scene) refuse_not_finite(scene, path);
    if (scene)
        scene = aiApplyPostProcessing(scene, aiProcess_RemoveComponent |
                                                 aiProcess_JoinIdenticalVertices |
                                                 aiProcess_PreTransformVertices);
    if (!scene) stop(1, "%s: %s", path, aiGetErrorString());
    return scene;
}

/* Appends one of assimp's meshes. */
static void append(mesh *m, const struct aiMesh *from)
{
    unsigned k, corner;
    for (k = 0; k < from->mNumFaces; k++) {
        if (from->mFaces[k].mNumIndices != 3) continue;
        for (corner = 0; corner < 3; corner++)
            m->index[3 * (size_t)m->triangles + corner] =
                m->vertices + (int32_t)from->mFaces[k].mIndices[corner];
        m->triangles++;
    }
    for (k = 0; k < from->mNumVertices; k++)
        m->vertex[m->vertices++] =
            vec_of((double)from->mVertices[k].x, (double)from->mVertices[k].y,
                   (double)from->mVertices[k].z);
}

static mesh load_mesh(const char *path, const char *up)
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
    if (m.triangles == 0) stop(1, "%s: there are no triangles in it", path);
    for (i = 0; *up == 'y' && i < m.vertices; i++) {
        vec const v = m.vertex[i];
        m.vertex[i].x[1] = -v.x[2];
        m.vertex[i].x[2] = v.x[1];
    }
    return m;
}

/* The line in the middle of the knot: three times round the tube of a torus while going round it
   twice. */
static vec knot_line(double t)
{
    return vec_of((2 + cos(3 * t)) * cos(2 * t), (2 + cos(3 * t)) * sin(2 * t), sin(3 * t));
}

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
            int32_t const a = r * around + k, b = next_r * around + k, c = next_r * around + next_k,
                          d = r * around + next_k;
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

typedef struct scene {
    mesh m;
    lbvh tree;
    int brute_force;
    vec centre;
    real radius;        /* of a ball around everything */
    double build_ms;
} scene;

static vec corner(const scene *s, int32_t triangle, int k)
{
    return s->m.vertex[s->m.index[3 * (size_t)triangle + (size_t)k]];
}

enum { NOTHING = -1 };

typedef struct hit {
    int32_t id;         /* the triangle, or NOTHING */
    real t, u, v;       /* distance; weights of the second and third corner */
} hit;

/* -------------------------------------------------------------------------------------------------
   >>camera: far enough away to see the ball around the mesh, turned around it
   ---------------------------------------------------------------------------------------------- */

typedef struct camera {
    vec eye, ahead, right, up;
    vec sun;            /* towards the light: from behind the camera, on the left, above */
    real half[2];       /* half of the width and height of what is seen, at distance 1 */
    real pixel;         /* edge of a pixel at distance 1 */
} camera;

static camera camera_for(const options *o, const scene *s)
{
    double const degree = 3.14159265358979 / 180, view = tan(17.5 * degree),
                 turn = o->turn * degree, tilt = o->tilt * degree;
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

/* The root of the tree has the box around all. */
static inline void find_ball(scene *s)
{
    vec low, high;
    int32_t i;
    memcpy(low.x, s->tree.node[0].min, sizeof low.x);
    memcpy(high.x, s->tree.node[0].max, sizeof high.x);
    s->centre = along(times((real)0.5, low), (real)0.5, high);
    for (i = 0; i < 3 * s->m.triangles; i++) {
        real const away = length(minus(s->m.vertex[s->m.index[i]], s->centre));
        if (away > s->radius) s->radius = away;
    }
    if (!(s->radius > 0)) s->radius = 1;
}

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

static inline int32_t say_nothing(const options *o)
{
    printf("pick       pixel %ld %ld: nothing there\n", (long)o->pick[0], (long)o->pick[1]);
    return NOTHING;
}

static inline void say_picked(const scene *s, const options *o, const sample *ray,
                              lbvh_feature feature)
{
    static const char *const names[] = {"face", "edge ab", "edge bc", "edge ca", "vertex a",
                                        "vertex b", "vertex c"};
    double const u = (double)ray->on.u, v = (double)ray->on.v;
    const int32_t *corners = s->m.index + 3 * (size_t)ray->on.id;
    printf("pick       pixel %ld %ld: ", (long)o->pick[0], (long)o->pick[1]);
    printf("triangle %ld at distance %.6g\n", (long)ray->on.id, (double)ray->on.t);
    printf("           point %.6g %.6g %.6g, weights a %.4f b %.4f c %.4f\n", (double)ray->at.x[0],
           (double)ray->at.x[1], (double)ray->at.x[2], 1 - u - v, u, v);
    printf("           feature: %s of the vertices a %ld, b %ld, c %ld\n", names[feature],
           (long)corners[0], (long)corners[1], (long)corners[2]);
}

#endif /* PICK_H */
