/* rebound.c - a steel sphere hits a wall at different angles: what the history of a contact is good
   for, in one collision.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the test of source 004 (Kureck 2016, section 6.2.2, table 6.1). A sphere that does
   not spin hits a wall with speed v_n into the wall and v_t along it, and leaves with v_n'
   (negative) and v_t', all of its contact point. From impulses alone follows equation 6.1, with e
   and beta the parts of the two speeds that are left, and mu the friction:

       it rolls, as friction holds:    -v_t'/v_n' = -beta/e v_t/v_n
       it slides all the time:         -v_t'/v_n' = 1/e v_t/v_n - 7/2 mu (1 + 1/e)

   With history the simulation lies on both lines. Without, friction can slow the surface down but
   never turn it round, and the first line is missed altogether.

   The force law is that of dem.h. The wall is a plane, whose history the sphere keeps, and a mesh
   in a list by nlist_build_mesh. Its triangles are so small that a contact crosses many edges: the
   list passes the history on from triangle to triangle.

   How to run it:

       make build/rebound && build/rebound             (from the top of the repository), or
       cc -O3 examples/rebound/rebound.c -o rebound -lstb -lm
       ./rebound --e 0.8 --beta 0.5 --mu 0.3 --out other.png

   What to look at: >>collision below, 60 lines. rebound_wall.h has the wall, rebound_plot.h the
   table and the plot. rebound.cu is the same program with all collisions at once on a GPU. */

#define PROGRAM "rebound"
#include "../common/base.h"
#include "../common/options.h"

#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#include "../common/dem.h"

typedef struct options {
    double e, beta, mu;
    int32_t steps;      /* time steps of a contact */
    const char *out;
} options;

static options parse(int argc, char **argv)
{
    options o = {0.95, 0.35, 0.75, 200, "build/rebound.png"};
    const option_line table[] = {
        DOUBLE("--e", "E", &o.e, 0.1, 1, "part of the normal velocity that is left (default 0.95)"),
        DOUBLE("--beta", "B", &o.beta, 0.01, 1, "the same along the wall, reversed (default 0.35)"),
        DOUBLE("--mu", "M", &o.mu, 0, 10, "friction (default 0.75)"),
        INT("--steps", "N", &o.steps, 20, 100000, "time steps of one contact (default 200)"),
        TEXT("--out", "FILE", &o.out, "the plot (default build/rebound.png)"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL, "A sphere hits a wall, with and without history.", NULL);
    return o;
}

#include "rebound_wall.h"

/* -------------------------------------------------------------------------------------------------
   >>collision
   ---------------------------------------------------------------------------------------------- */

enum { MESH = 1, HISTORY = 2, WAYS = 4 };

/* The sphere touches the wall, and nothing is known of the contact. */
static void start(wall *w, double ratio, int way)
{
    int a;
    memset(w->pos, 0, sizeof w->pos);
    memset(w->spin, 0, sizeof w->spin);
    memset(w->plane_history, 0, sizeof w->plane_history);
    nlist_free(&w->list);
    w->pos[2] = w->pos[3] = (dem_real)radius;
    for (a = 0; a < 2; a++) w->vel[a] = (dem_real)(ratio * v_n * askew[a]);
    w->vel[2] = (dem_real)-v_n;
    w->vel[3] = (dem_real)(1 / dem_mass(radius, density));
    w->system.history_off = !(way & HISTORY);
}

/* -v_t'/v_n' of the contact point, which goes with velocity + spin x (0, 0, -radius). */
static double leaving(const dem_real *vel, const dem_real *spin)
{
    double const x = (double)vel[0] - (double)spin[1] * radius,
                 y = (double)vel[1] + (double)spin[0] * radius;
    return (x * askew[0] + y * askew[1]) / (double)vel[2];
}

static int has_left(const dem_real *pos, const dem_real *vel)
{
    return vel[2] > 0 && pos[2] >= pos[3];
}

/* The collisions at `count` ratios v_t/v_n; seen: -v_t'/v_n' of each. */
static void collide_all(wall *w, const options *o, int32_t count, const double *ratios, int way,
                        double *seen);

#ifndef __CUDACC__ /* rebound.cu has its own */
static void step(wall *w, int way)
{
    dem_real sum[DEM_SUMS] = {0, 0, 0, 0, 0, 0};
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    if (way & MESH) {
        MUST(nlist, nlist_build_mesh(&w->list, &w->desc, &w->tree, &w->system.mesh, w->pos,
                                     DEM_STRIDE, 1), "the list");
        MUST(nlist, nlist_sum(&w->list, &how, dem_triangle_fn, &w->system, sum), "the forces");
    } else {
        dem_planes(&w->system, 0, sum);
    }
    dem_move(&w->system, 0, sum);
}

static double collide(wall *w, const options *o, double ratio, int way)
{
    int k;
    start(w, ratio, way);
    for (k = 0; k < 3 * o->steps && !has_left(w->pos, w->vel); k++) step(w, way);
    if (k == 3 * o->steps) stop(1, "v_t/v_n = %g: the sphere does not leave the wall", ratio);
    return leaving(w->vel, w->spin);
}

static void collide_all(wall *w, const options *o, int32_t count, const double *ratios, int way,
                        double *seen)
{
    int32_t k;
    for (k = 0; k < count; k++) seen[k] = collide(w, o, ratios[k], way);
}
#endif

#include "rebound_plot.h"

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    wall *w = wall_new(&o);
    double seen[ROWS][WAYS];
    print_table(w, &o, seen);
    draw_plot(w, &o);
    printf("picture: %s\n", o.out);
    print_figures(&o, seen);
    nlist_free(&w->list);
    lbvh_free(&w->tree);
    free(w);
    return 0;
}
