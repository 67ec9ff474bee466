/* nearfield.c - eight scenes for a browser: boids and a dam break (ugrid.h), a galaxy (nbody.h),
   the steps of a tree, things that are thrown, and a knot to pick at (lbvh.h), a fluid and tablets
   in a drum (nlist.h).
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the serial headers as they are, compiled to WebAssembly. A scene starts, steps and
   takes the mouse; page.html calls it, and draws what lies in two arrays: points, {x, y, vx, vy}
   each, and boxes, {min x, min y, max x, max y}. Both are in the coordinates of the page: x from 0
   to page.wide, y from 0 to page.high, upwards, 16 and 9 on a screen that is wide; speeds are about
   1 at most. (Galaxy: vx is the speed, negative in the first disc. Tree: vx is 1 where the query
   found it. Tablets: the axis. Things: see scene_things.h. The knot is a picture: scene_pick.h.)

   How to run it: make web (emscripten), then open build/web/nearfield.html: one file, which needs
   no server.

   What to look at: scene_dam.h, scene_galaxy.h and scene_tree.h, a simulation each; then
   scene_things.h and scene_pick.h for games, scene_fluid.h and scene_tablets.h. */

#define PROGRAM "nearfield"
#include "../common/base.h"

#define UGRID_IMPLEMENTATION
#include "../boids/boids.h"
#define NBODY_WITH_STEP /* more/nbody_step.h: integrators, and the error against direct sums */
#define NBODY_IMPLEMENTATION
#include "../../nbody.h"
#define LBVH_WITH_WORLD /* more/lbvh_world.h: objects that come, move and go */
#define LBVH_WITH_WIDE /* more/lbvh_wide.h: rays in bulk */
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"
#include "../fluid/fluid_model.h"
#include "../common/dem_shapes.h"

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#define WEB_API EMSCRIPTEN_KEEPALIVE
#else
#define WEB_API
#endif

typedef struct web_mouse { float x, y; int over, down; } web_mouse;

/* What all scenes share. */
typedef struct web_page {
    int32_t n, boxes, level;
    float wide, high;
    float *points;          /* [4 n] */
    float *box;             /* [4 boxes], room for [8 n] */
    float size;             /* of a point, where it has one: its radius */
    /* the number that the page shows: neighbours each, bodies per direct sum, nodes visited */
    double figure;
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

#include "scene_boids.h"
#include "scene_dam.h"
#include "scene_galaxy.h"
#include "scene_tree.h"
#include "scene_fluid.h"
#include "scene_tablets.h"
#include "scene_things.h"
#include "scene_pick.h"

/* -------------------------------------------------------------------------------------------------
   >>api: what page.html calls
   ---------------------------------------------------------------------------------------------- */

static const web_scene scenes[] = {{boids_begin, boids_go, boids_end},
                                   {dam_begin, dam_go, dam_end},
                                   {galaxy_begin, galaxy_go, galaxy_end},
                                   {tree_begin, tree_go, tree_end},
                                   {fluid_begin, fluid_go, fluid_end},
                                   {tablets_begin, tablets_go, tablets_end},
                                   {things_begin, things_go, things_end},
                                   {pick_begin, pick_go, pick_end}};
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
    page.box = (float *)calloc(8 * (size_t)n, sizeof(float));
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

/* How wide and high the page is, from the next start on. */
WEB_API void web_shape(float wide, float high)
{
    page.wide = wide;
    page.high = high;
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

/* Of the tree; how fast the knot turns. */
WEB_API void web_set_level(int level) { page.level = level; }
WEB_API int web_levels(void) { return tree.deepest + 1; }
WEB_API int web_boxes(void) { return page.boxes; }
WEB_API float *web_box_data(void) { return page.box; }
WEB_API float *web_points(void) { return page.points; }
WEB_API float web_size(void) { return page.size; }
WEB_API double web_figure(void) { return page.figure; }
WEB_API int web_lines(void) { return things.lines; }
WEB_API float *web_line_data(void) { return things.line; }
WEB_API int web_stored_pairs(void) { return things.world.pairs; }
WEB_API int web_reason(void) { return (int)things.world.reason; }
WEB_API uint32_t *web_picture(void) { return pick.picture; }
WEB_API int web_picture_wide(void) { return pick.wide_by; }
WEB_API int web_picture_high(void) { return pick.high_by; }
