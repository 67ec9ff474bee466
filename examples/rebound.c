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
       cc -O3 examples/rebound.c -o rebound -lstb -lm
       ./rebound --e 0.8 --beta 0.5 --mu 0.3 --out other.png

   What to look at: >>collision below, 60 lines. rebound_plot.h has the table and the plot. */

#define PROGRAM "rebound"
#include "common/base.h"
#include "common/options.h"

#define LBVH_IMPLEMENTATION
#include "../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../nlist.h"

#include "common/dem.h"

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

/* -------------------------------------------------------------------------------------------------
   >>wall: the same wall z = 0 twice, a plane and a mesh
   ---------------------------------------------------------------------------------------------- */

/* A sphere of 10 mm hits at 1 m/s, and is pressed in by a thousandth of its radius: stiff enough
   for the exact lines, whose sphere keeps its shape, and coarse enough for floats. The contact
   lasts 31 microseconds. */
static double const radius = 0.01, density = 7800, v_n = 1, dent = 1e-5;

/* At v_t/v_n = 9 the contact runs for 0.28 mm, askew, over 6 edges. What the sphere covers of
   the wall has a radius of sqrt(2 radius dent) = 0.45 mm, 100 triangles. */
enum { SQUARES = 16 };
static double const square = 1e-4, askew[3] = {0.9396926, 0.3420201, 0}; /* 20 degrees */

typedef struct wall {
    dem_system system;
    dem_real pos[4], vel[4], spin[4], plane_history[4]; /* of the only sphere */
    dem_real corner[3 * (SQUARES + 1) * (SQUARES + 1)];
    int32_t index[6 * SQUARES * SQUARES];
    lbvh tree;
    nlist list;
    nlist_desc desc;
} wall;

/* Squares of two triangles. The sphere starts above a corner. */
static void make_mesh(wall *w)
{
    int32_t x, y, k = 0;
    for (y = 0; y <= SQUARES; y++)
        for (x = 0; x <= SQUARES; x++) {
            dem_real *corner = w->corner + 3 * (y * (SQUARES + 1) + x);
            corner[0] = (dem_real)((x - SQUARES / 2) * square);
            corner[1] = (dem_real)((y - SQUARES / 2) * square);
            corner[2] = 0;
        }
    for (y = 0; y < SQUARES; y++)
        for (x = 0; x < SQUARES; x++) {
            int32_t const a = y * (SQUARES + 1) + x, b = a + 1, c = b + SQUARES + 1, d = c - 1;
            int32_t const two[6] = {a, b, c, a, c, d};
            memcpy(w->index + 6 * k++, two, sizeof two);
        }
    w->system.mesh.vertices = w->corner;
    w->system.mesh.vertex_count = (SQUARES + 1) * (SQUARES + 1);
    w->system.mesh.indices = w->index;
    w->system.mesh.triangles = 2 * SQUARES * SQUARES;
}

static void make_tree(wall *w)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    desc.indices = w->index;
    desc.vertices = w->system.mesh.vertex_count;
    MUST(lbvh, lbvh_build(&w->tree, &desc, w->corner, 0, w->system.mesh.triangles), "the tree");
}

static wall *wall_new(const options *o)
{
    wall *w = (wall *)zeros(1, sizeof *w);
    double const mass = dem_mass(radius, density);
    w->system.n = 1;
    w->system.pos = w->pos;
    w->system.vel = w->vel;
    w->system.spin = w->spin;
    w->system.plane_history = w->plane_history;
    w->system.planes = 1;
    w->system.plane[0].normal[2] = 1;
    w->system.walls = dem_material_of(mass * v_n * v_n / (dent * dent), o->e, o->beta, o->mu);
    w->system.dt = (dem_real)(dem_contact_time(&w->system.walls, mass) / o->steps);
    w->desc.radius = (dem_real)radius;
    w->desc.history = DEM_HISTORY;
    make_mesh(w);
    make_tree(w);
    return w;
}

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

/* -v_t'/v_n' of the contact point, which goes with velocity + spin x (0, 0, -radius). */
static double collide(wall *w, const options *o, double ratio, int way)
{
    double x, y;
    int k;
    start(w, ratio, way);
    for (k = 0; k < 3 * o->steps && !(w->vel[2] > 0 && w->pos[2] >= w->pos[3]); k++) step(w, way);
    if (k == 3 * o->steps) stop(1, "v_t/v_n = %g: the sphere does not leave the wall", ratio);
    x = (double)w->vel[0] - (double)w->spin[1] * radius;
    y = (double)w->vel[1] + (double)w->spin[0] * radius;
    return (x * askew[0] + y * askew[1]) / (double)w->vel[2];
}

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
