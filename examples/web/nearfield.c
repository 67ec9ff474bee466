/* nearfield.c - four scenes for a browser: boids and a dam break (ugrid.h), a galaxy (nbody.h), the steps of a tree (lbvh.h).
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the serial headers as they are, compiled to WebAssembly. A scene starts, steps and takes the mouse; page.html calls
   it, and draws what lies in two arrays: points, {x, y, vx, vy} each, and boxes, {min x, min y, max x, max y}. Both are in the
   coordinates of the page: x from 0 to 16, y from 0 to 9, upwards; speeds are about 1 at most. (Galaxy: vx is the speed, negative in
   the first disc. Tree: vx is 1 where the query found it.)

   How to run it: make web (emscripten), then open build/web/nearfield.html: one file, which needs no server.

   What to look at: >>dam and >>galaxy, 60 lines each, and >>tree. The boids are in ../boids.h. */

#define UGRID_IMPLEMENTATION
#include "../boids.h"
#define NBODY_IMPLEMENTATION
#include "../../nbody.h"
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#define WEB_API EMSCRIPTEN_KEEPALIVE
#else
#define WEB_API
#endif

#define WEB_WIDE 16.0f
#define WEB_HIGH 9.0f

typedef struct web_mouse { float x, y; int over, down; } web_mouse;

/* What all scenes share. */
typedef struct web_page {
    int32_t n, boxes;
    float *points;          /* [4 n] */
    float *box;             /* [4 boxes] */
    float size;             /* of a point, where it has one: its radius */
    double figure;          /* the number that the page shows: neighbours each, bodies per direct sum, nodes visited */
    float setting;          /* of the second slider, 0 .. 1 */
    uint32_t random;
    web_mouse mouse;
} web_page;

static web_page page;
static const char *const no_memory = "out of memory";

/* From 0 to 1. */
static float web_random(void) { return (boids_random(page.random++) + 1) / 2; }

static void web_put(int32_t i, float x, float y, float vx, float vy)
{
    float *p = page.points + 4 * (size_t)i;
    p[0] = x;
    p[1] = y;
    p[2] = vx;
    p[3] = vy;
}

/* A scene: each function returns NULL, or what is wrong. The step also puts the points. */
typedef struct web_scene {
    const char *(*start)(void);
    const char *(*step)(void);
    void (*stop)(void);
} web_scene;

/* ------------------------------------------------------------------------------------------------
   >>boids. Setting: how many others each would see if they were spread evenly, 4 .. 40.
   ------------------------------------------------------------------------------------------------ */

static boids_flock flock;

static const char *boids_begin(void)
{
    boids_model const model = boids_model_of(page.n, 4 + 36 * page.setting);
    return boids_start(&flock, &model, page.n, 1) ? NULL : no_memory;
}

static const char *boids_go(void)
{
    float const scale = WEB_WIDE / flock.model.box[0];
    ugrid_result result;
    int32_t i;
    flock.model.hunted = page.mouse.over;
    flock.model.predator[0] = page.mouse.x / scale;
    flock.model.predator[1] = page.mouse.y / scale;
    result = boids_step(&flock);
    if (result != UGRID_OK) return ugrid_result_text(result);
    for (i = 0; i < page.n; i++) {
        const float *p = flock.pos + 2 * (size_t)i, *v = flock.vel + 2 * (size_t)i;
        web_put(flock.id[i], scale * p[0], scale * p[1], v[0] / BOIDS_FAST, v[1] / BOIDS_FAST);
    }
    page.size = 0.3f * scale;
    page.figure = (double)flock.near / page.n;
    return NULL;
}

static void boids_end(void) { boids_free(&flock); }

/* ------------------------------------------------------------------------------------------------
   >>dam: discs burst out of the left part of a box. Lengths are in diameters, masses are 1, a step takes a time of 1.
   Setting: how much of the box they fill, 15 .. 60 %.
   ------------------------------------------------------------------------------------------------ */

static struct dam {
    ugrid grid;
    float box[2], scale, gravity;   /* scale: a diameter on the page */
    float *pos, *vel, *force;       /* [2 n] */
} dam;

#define DAM_SPRING  0.3f
#define DAM_DASHPOT 0.12f
#define DAM_SHEAR   0.01f

static void dam_end(void)
{
    ugrid_free(&dam.grid);
    free(dam.pos);
    free(dam.vel);
    free(dam.force);
    memset(&dam, 0, sizeof dam);
}

static const char *dam_begin(void)
{
    float const part = 0.15f + 0.45f * page.setting;
    int32_t i, column;
    dam.scale = sqrtf(part * WEB_WIDE * WEB_HIGH / (float)page.n);
    dam.box[0] = WEB_WIDE / dam.scale;
    dam.box[1] = WEB_HIGH / dam.scale;
    dam.gravity = 0.25f * DAM_SPRING / dam.box[1];  /* a column as high as the box presses its lowest disc by a quarter */
    dam.pos = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    dam.vel = (float *)calloc(2 * (size_t)page.n, sizeof(float));
    dam.force = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    if (!dam.pos || !dam.vel || !dam.force) { dam_end(); return no_memory; }
    column = (int32_t)dam.box[1] > 1 ? (int32_t)dam.box[1] : 1;
    for (i = 0; i < page.n; i++) {
        dam.pos[2 * i] = (float)(i / column) + 0.5f + 0.05f * web_random();
        dam.pos[2 * i + 1] = (float)(i % column) + 0.5f + 0.05f * web_random();
    }
    page.size = dam.scale / 2;
    return NULL;
}

/* Two discs that touch push each other apart, and lose speed against each other. */
static void dam_touch(int32_t i, int32_t j, const float d[3], float d2)
{
    float const distance = sqrtf(d2), inverse = distance > 0 ? 1 / distance : 0;
    float const n[2] = {d[0] * inverse, d[1] * inverse};
    float const u[2] = {dam.vel[2 * j] - dam.vel[2 * i], dam.vel[2 * j + 1] - dam.vel[2 * i + 1]};
    float const along = u[0] * n[0] + u[1] * n[1], normal = DAM_DASHPOT * along - DAM_SPRING * (1 - distance);
    int a;
    for (a = 0; a < 2; a++) {
        float const force = normal * n[a] + DAM_SHEAR * (u[a] - along * n[a]);
        dam.force[2 * i + a] += force;
        dam.force[2 * j + a] -= force;
    }
}

/* Each pair once, in a half walk. */
static double dam_forces(void)
{
    int32_t place, pairs = 0;
    memset(dam.force, 0, 2 * (size_t)page.n * sizeof(float));
    for (place = 0; place < page.n; place++) {
        ugrid_near near = ugrid_near_half(&dam.grid, place, 1);
        int32_t const i = ugrid_id(&dam.grid, place);
        float p[3], d[3];
        int32_t k;
        ugrid_point(&dam.grid, place, p);
        while (ugrid_next_range(&near))
            for (k = near.begin; k < near.end; k++) {
                const ugrid_record *other = &dam.grid.record[k];
                float d2;
                d[0] = other->x[0] - p[0];
                d[1] = other->x[1] - p[1];
                d2 = d[0] * d[0] + d[1] * d[1];
                if (d2 >= 1) continue;
                dam_touch(i, other->link, d, d2);
                pairs++;
            }
    }
    return 2.0 * pairs / page.n;
}

static void dam_move(int32_t i)
{
    float *p = dam.pos + 2 * i, *v = dam.vel + 2 * i;
    float const away[2] = {p[0] - page.mouse.x / dam.scale, p[1] - page.mouse.y / dam.scale}, reach = 1.2f / dam.scale;
    float const distance = sqrtf(away[0] * away[0] + away[1] * away[1]);
    int a;
    v[1] -= dam.gravity;
    for (a = 0; a < 2; a++) {
        v[a] += dam.force[2 * i + a];
        if (page.mouse.down && distance < reach && distance > 0) v[a] += 20 * dam.gravity * (1 - distance / reach) * away[a] / distance;
        if (v[a] > 0.3f) v[a] = 0.3f;       /* nobody passes through another in a step */
        if (v[a] < -0.3f) v[a] = -0.3f;
        p[a] += v[a];
        if (p[a] < 0.5f) { p[a] = 0.5f; v[a] *= -0.5f; }
        if (p[a] > dam.box[a] - 0.5f) { p[a] = dam.box[a] - 0.5f; v[a] *= -0.5f; }
    }
}

static const char *dam_go(void)
{
    float const fast = sqrtf(2 * dam.gravity * dam.box[1]); /* from the top to the bottom */
    ugrid_desc desc;
    ugrid_result result;
    int32_t i;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.max[0] = dam.box[0];
    desc.max[1] = dam.box[1];
    desc.cell = 1;
    desc.method = UGRID_COUNT;
    result = ugrid_build(&dam.grid, &desc, dam.pos, 0, page.n);
    if (result != UGRID_OK) return ugrid_result_text(result);
    page.figure = dam_forces();
    for (i = 0; i < page.n; i++) {
        dam_move(i);
        web_put(i, dam.scale * dam.pos[2 * i], dam.scale * dam.pos[2 * i + 1], dam.vel[2 * i] / fast, dam.vel[2 * i + 1] / fast);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
   >>galaxy: two discs pass each other. The last body is the mouse: without mass until its button is pressed.
   Setting: softening, 0.02 .. 0.2.
   ------------------------------------------------------------------------------------------------ */

static struct galaxy {
    nbody sim;
    nbody_desc desc;
    nbody_bodies bodies;
    float *mass;
} galaxy;

#define GALAXY_SCALE 2.2f   /* a unit of length on the page */
#define GALAXY_HEART 0.8f   /* part of a disc's mass that is one heavy body in its middle */

static void galaxy_end(void)
{
    nbody_free(&galaxy.sim);
    free(galaxy.bodies.pos);
    free(galaxy.bodies.vel);
    free(galaxy.bodies.acc);
    free(galaxy.mass);
    memset(&galaxy, 0, sizeof galaxy);
}

/* Bodies first .. first + n - 1 around (0, 0), on circles for the force that really acts there. */
static nbody_result galaxy_disc(int32_t first, int32_t n, float mass, float radius, float spin)
{
    float *pos = galaxy.bodies.pos + 2 * first, *vel = galaxy.bodies.vel + 2 * first, *acc = galaxy.bodies.acc + 2 * first;
    nbody_result result;
    int32_t i;
    for (i = 0; i < n; i++) {
        float const r = i ? radius * sqrtf(0.01f + 0.99f * web_random()) : 0, angle = 6.2831853f * web_random();
        pos[2 * i] = r * cosf(angle);
        pos[2 * i + 1] = r * sinf(angle);
        galaxy.mass[first + i] = i ? (1 - GALAXY_HEART) * mass / (float)n : GALAXY_HEART * mass;
    }
    result = nbody_accelerations(&galaxy.sim, &galaxy.desc, pos, 0, galaxy.mass + first, n, acc);
    for (i = 0; i < n; i++) {
        float const x = pos[2 * i], y = pos[2 * i + 1], inwards = -(acc[2 * i] * x + acc[2 * i + 1] * y);   /* a r = v^2 */
        float const turn = i && inwards > 0 ? spin * sqrtf(inwards / (x * x + y * y)) : 0;
        vel[2 * i] = -y * turn;
        vel[2 * i + 1] = x * turn;
    }
    return result;
}

static void galaxy_shift(int32_t first, int32_t n, float x, float y, float vx, float vy)
{
    int32_t i;
    for (i = first; i < first + n; i++) {
        float *p = galaxy.bodies.pos + 2 * i, *v = galaxy.bodies.vel + 2 * i;
        p[0] += x;
        p[1] += y;
        v[0] += vx;
        v[1] += vy;
    }
}

static const char *galaxy_begin(void)
{
    size_t const size = (size_t)page.n + 1;
    int32_t const second = page.n * 3 / 8, first = page.n - second;
    nbody_result result;
    galaxy.desc.order = 2;
    galaxy.desc.softening = 0.02f + 0.18f * page.setting;
    galaxy.bodies.n = page.n + 1;
    galaxy.bodies.pos = (float *)calloc(2 * size, sizeof(float));
    galaxy.bodies.vel = (float *)calloc(2 * size, sizeof(float));
    galaxy.bodies.acc = (float *)calloc(2 * size, sizeof(float));
    galaxy.bodies.mass = galaxy.mass = (float *)calloc(size, sizeof(float));
    if (!galaxy.bodies.pos || !galaxy.bodies.vel || !galaxy.bodies.acc || !galaxy.mass) { galaxy_end(); return no_memory; }
    result = galaxy_disc(0, first, 1, 1, 1);
    if (result == NBODY_OK && second) result = galaxy_disc(first, second, 0.6f, 0.77f, 1);
    galaxy_shift(0, first, -0.9f, 0.4f, 0.18f, -0.26f);
    galaxy_shift(first, second, 1.5f, -0.67f, -0.3f, 0.43f);
    page.size = 0.02f;
    return result == NBODY_OK ? NULL : nbody_result_text(result);
}

static const char *galaxy_go(void)
{
    int32_t const last = page.n, second = page.n - page.n * 3 / 8;
    nbody_counts counts;
    nbody_result result;
    int32_t i;
    galaxy.bodies.pos[2 * last] = (page.mouse.x - WEB_WIDE / 2) / GALAXY_SCALE;
    galaxy.bodies.pos[2 * last + 1] = (page.mouse.y - WEB_HIGH / 2) / GALAXY_SCALE;
    galaxy.bodies.vel[2 * last] = galaxy.bodies.vel[2 * last + 1] = 0;
    if (page.mouse.down || galaxy.mass[last] > 0) galaxy.bodies.fresh = 0; /* the forces have changed */
    galaxy.mass[last] = page.mouse.down ? 1.0f : 0;
    result = nbody_step(&galaxy.sim, &galaxy.desc, &galaxy.bodies, 0.01f, NBODY_LEAPFROG);
    if (result == NBODY_OK) result = nbody_count(&galaxy.sim, &counts);
    if (result != NBODY_OK) return nbody_result_text(result);
    page.figure = (double)counts.near_terms / galaxy.bodies.n - 1;
    for (i = 0; i < page.n; i++) {
        const float *p = galaxy.bodies.pos + 2 * i, *v = galaxy.bodies.vel + 2 * i;
        float const speed = sqrtf(v[0] * v[0] + v[1] * v[1]);
        web_put(i, WEB_WIDE / 2 + GALAXY_SCALE * p[0], WEB_HIGH / 2 + GALAXY_SCALE * p[1], i < second ? -speed : speed, 0);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
   >>tree: points drift; in each step a tree is built over them. The page gets the points in Morton order, which is that of the
   leaves, and the boxes of one level. Setting: edge of the query box around the mouse.
   ------------------------------------------------------------------------------------------------ */

static struct tree {
    lbvh tree;
    float *pos, *vel;   /* [2 n] */
    int32_t *found;     /* [n] by element: did the query find it? */
    int32_t level, deepest;
} tree;

static void tree_end(void)
{
    lbvh_free(&tree.tree);
    free(tree.pos);
    free(tree.vel);
    free(tree.found);
    memset(&tree, 0, sizeof tree);
}

/* Half of them everywhere, the others in heaps. */
static const char *tree_begin(void)
{
    int32_t i, a;
    tree.pos = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    tree.vel = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    tree.found = (int32_t *)malloc((size_t)page.n * sizeof(int32_t));
    if (!tree.pos || !tree.vel || !tree.found) { tree_end(); return no_memory; }
    for (i = 0; i < page.n; i++)
        for (a = 0; a < 2; a++) {
            float const size = a ? WEB_HIGH : WEB_WIDE, heap = size * (boids_random((uint32_t)(i % 5 * 2 + a)) * 0.4f + 0.5f);
            float const near = web_random() + web_random() + web_random() - 1.5f;
            tree.pos[2 * i + a] = i & 1 ? size * (0.02f + 0.96f * web_random()) : heap + near;
            tree.vel[2 * i + a] = 0.012f * (web_random() - 0.5f);
        }
    page.size = 0.04f;
    return NULL;
}

/* Down from the root: the left child is the node's link, the right one comes when the left one and all below it are done. */
static void tree_boxes(int32_t node, int32_t level)
{
    const lbvh_node *at = &tree.tree.node[node];
    float const box[4] = {at->min[0], at->min[1], at->max[0], at->max[1]};
    if (node >= tree.tree.first_leaf) return;
    if (level > tree.deepest) tree.deepest = level;
    if (level == tree.level) memcpy(page.box + 4 * (size_t)page.boxes++, box, sizeof box);
    tree_boxes(at->link, level + 1);
    tree_boxes(tree.tree.node[at->link].skip, level + 1);
}

static void tree_query(void)
{
    float const half = 0.2f + 1.3f * page.setting;
    float const box[4] = {page.mouse.x - half, page.mouse.y - half, page.mouse.x + half, page.mouse.y + half};
    lbvh_overlap near = lbvh_overlap_box(&tree.tree, box);
    int32_t count = 0;
    memset(tree.found, 0, (size_t)page.n * sizeof(int32_t));
    if (page.mouse.over)
        while (lbvh_next(&near)) {
            tree.found[near.id] = 1;
            count++;
        }
    page.figure = count;
}

static const char *tree_go(void)
{
    lbvh_desc desc;
    lbvh_result result;
    int32_t k;
    for (k = 0; k < 2 * page.n; k++) {
        float const size = k & 1 ? WEB_HIGH : WEB_WIDE;
        tree.pos[k] += tree.vel[k];
        if (tree.pos[k] < 0.02f * size || tree.pos[k] > 0.98f * size) tree.vel[k] = -tree.vel[k];
        if (tree.pos[k] < 0.02f * size) tree.pos[k] = 0.02f * size;
        if (tree.pos[k] > 0.98f * size) tree.pos[k] = 0.98f * size;
    }
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.kind = LBVH_POINTS;
    result = lbvh_build(&tree.tree, &desc, tree.pos, 0, page.n);
    if (result != LBVH_OK) return lbvh_result_text(result);
    tree_query();
    page.boxes = tree.deepest = 0;
    tree_boxes(0, 0);
    for (k = 0; k < page.n; k++) {
        int32_t const id = tree.tree.node[tree.tree.first_leaf + k].link;
        web_put(k, tree.pos[2 * id], tree.pos[2 * id + 1], (float)tree.found[id], 0);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------
   >>api: what page.html calls
   ------------------------------------------------------------------------------------------------ */

static const web_scene scenes[] = {
    {boids_begin, boids_go, boids_end}, {dam_begin, dam_go, dam_end}, {galaxy_begin, galaxy_go, galaxy_end},
    {tree_begin, tree_go, tree_end}
};
static const web_scene *scene;

/* Ends what goes on and starts a scene with n particles, n > 0. NULL, or what is wrong. */
WEB_API const char *web_start(int number, int n, float setting)
{
    const char *wrong;
    if (scene) scene->stop();
    scene = NULL;
    free(page.points);
    free(page.box);
    page.points = (float *)calloc(4 * (size_t)n, sizeof(float));
    page.box = (float *)calloc(4 * (size_t)n, sizeof(float));
    if (!page.points || !page.box) return no_memory;
    page.n = n;
    page.boxes = 0;
    page.figure = 0;
    page.setting = setting;
    page.random = 1;
    wrong = scenes[number].start();
    if (!wrong) scene = &scenes[number];
    return wrong;
}

/* One step. NULL, or what is wrong. */
WEB_API const char *web_step(void) { return scene ? scene->step() : NULL; }

WEB_API void web_mouse_at(float x, float y, int over, int down)
{
    page.mouse.x = x;
    page.mouse.y = y;
    page.mouse.over = over;
    page.mouse.down = down;
}

WEB_API void web_set_level(int level) { tree.level = level; }
WEB_API int web_levels(void) { return tree.deepest + 1; }
WEB_API int web_boxes(void) { return page.boxes; }
WEB_API float *web_box_data(void) { return page.box; }
WEB_API float *web_points(void) { return page.points; }
WEB_API float web_size(void) { return page.size; }
WEB_API double web_figure(void) { return page.figure; }
