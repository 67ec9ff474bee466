/* how.c - the arrays behind the page "how it works": what each header makes of a few points.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: how ugrid.h, lbvh.h, nbody.h and nlist.h are read from outside. The page puts
   points into how_points(), calls how_grid, how_tree, how_bodies or how_list, and gets arrays with
   names. They are those of the headers, or copies of single fields; nothing is computed twice.

   How to run it: make web (emscripten), then open build/web/how.html: one file, which needs no
   server.

   What to look at: how_grid.h, how_tree.h, how_bodies.h and how_list.h; the files .js of the same
   names draw the arrays. */

#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NBODY_IMPLEMENTATION
#include "../../nbody.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#define HOW_API EMSCRIPTEN_KEEPALIVE
#else
#define HOW_API
#endif

enum { HOW_MOST = 64, HOW_ARRAYS = 40 };

typedef struct how_array {
    const char *name;
    int floats;             /* 1: floats, 0: 32-bit integers */
    const void *data;
    int32_t length;
} how_array;

static struct how {
    float pos[2 * HOW_MOST];
    float query[4];         /* grid: x, y, radius; tree: a box, min x, min y, max x, max y */
    how_array array[HOW_ARRAYS];
    int32_t arrays;
} how;

static void how_give(const char *name, int floats, const void *data, int32_t length)
{
    how_array *a;
    if (how.arrays == HOW_ARRAYS) return;
    a = &how.array[how.arrays++];
    a->name = name;
    a->floats = floats;
    a->data = data;
    a->length = length;
}

static void how_ints(const char *name, const int32_t *data, int32_t length)
{
    how_give(name, 0, data, length);
}

static void how_floats(const char *name, const float *data, int32_t length)
{
    how_give(name, 1, data, length);
}

#include "how_grid.h"
#include "how_tree.h"
#include "how_bodies.h"
#include "how_list.h"

/* -------------------------------------------------------------------------------------------------
   >>api: what how.html calls. Four functions return NULL, or what is wrong; n is 1 .. how_most()
   ---------------------------------------------------------------------------------------------- */

HOW_API int how_most(void) { return HOW_MOST; }
HOW_API float *how_points(void) { return how.pos; }
HOW_API float *how_query(void) { return how.query; }

HOW_API const char *how_grid(int n)
{
    how.arrays = 0;
    return grid_make(n);
}

HOW_API const char *how_tree(int n)
{
    how.arrays = 0;
    return tree_make(n);
}

HOW_API const char *how_bodies(int n, int body)
{
    how.arrays = 0;
    return bodies_make(n, body);
}

/* The points are those of the next time; `first`: there was none before. */
HOW_API const char *how_list(int n, int first)
{
    how.arrays = 0;
    return list_make(n, first);
}

HOW_API int how_arrays(void) { return how.arrays; }
HOW_API const char *how_name(int k) { return how.array[k].name; }
HOW_API int how_is_floats(int k) { return how.array[k].floats; }
HOW_API const void *how_data(int k) { return how.array[k].data; }
HOW_API int how_length(int k) { return how.array[k].length; }
