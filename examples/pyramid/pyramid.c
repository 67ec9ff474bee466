/* pyramid.c - four spheres stacked on a floor: with contact history they stay, without they roll
   away.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the test of source 004 (Kureck 2016, section 6.2.2, figure 6.4). Three spheres of
   10 mm lie on a floor, the fourth on them. What holds them is friction at rest, and that is a
   spring that remembers how far two surfaces were pushed along each other: the history of the
   contact. Friction without memory only slows down, and the heap flows apart.

                        .---.
                       /  3  \
                    .--\     /--.       between 0 and 3:   N = W/3      f = N tan(a/2) = 0.3178 N
                   / 0  '---'  1 \      under 0:           N = 4/3 W    f = 0.3178 W/3
                   \     / \     /
                 ---'---'---'---'---

   The forces are known. Let a = 35.26 degrees be the angle between the vertical and the line from
   the centre of 0 to that of 3, W the weight of a sphere. The lower spheres touch the floor and
   sphere 3, and not each other: they do not begin to turn if both have the same friction f.

   So with friction below 0.3178 no history can hold them: try --mu 0.3 and --mu 0.34.

   The spheres find each other and the triangles of the floor through two lists of nlist.h, built
   anew in each of 180 thousand steps, with their history. All is in double: in float the heap with
   history creeps by 0.003 radii a second, as a sphere that trembles moves by less than the last
   digit of its position, and that rounding does not forget evenly.

   How to run it:

       make build/pyramid && build/pyramid             (from the top of the repository), or
       cc -O3 examples/pyramid/pyramid.c -o pyramid -lstb -lm
       ./pyramid --mu 0.31

   What to look at: >>step below, 60 lines. pyramid.h has the heap and the pictures, pyramid_run.h
   what is printed. */

#define PROGRAM "pyramid"
#include "../common/base.h"
#include "../common/options.h"

#ifndef NLIST_REAL
#define NLIST_REAL double
#define LBVH_REAL double
#endif
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#include "pyramid_run.h"

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* Pairs of spheres, and spheres with triangles, each with its history. */
static nlist_desc list_desc(int walls)
{
    nlist_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.history = DEM_HISTORY;
    desc.half = !walls;
    desc.radius = (dem_real)(walls ? radius : 2 * radius);
    return desc;
}

static void build_lists(heap *h)
{
    nlist_desc const pairs = list_desc(0), walls = list_desc(1);
    const dem_real *pos = h->spheres.pos;
    MUST(nlist, nlist_build_brute(&h->pairs, &pairs, pos, DEM_STRIDE, SPHERES), "the lists");
    MUST(nlist, nlist_build_mesh(&h->walls, &walls, &h->floor, &h->system.mesh, pos, DEM_STRIDE,
                                 SPHERES), "the lists");
}

/* Sphere i, when all forces on it are known. */
DEM_FN void move_sphere(const dem_system *system, heap_spheres *s, int32_t i)
{
    dem_real from[3], distance;
    int a;
    dem_move(system, i, s->sum + DEM_SUMS * i);
    turn(s->axes[i], s->spin + 4 * i, system->dt);
    for (a = 0; a < 3; a++) from[a] = s->pos[4 * i + a] - s->start[4 * i + a];
    distance = dem_root(dem_dot(from, from));
    if (distance > s->moved[i]) s->moved[i] = distance;
}

static void step(heap *h)
{
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    dem_real *sum = h->spheres.sum;
    int32_t i;
    build_lists(h);
    memset(sum, 0, sizeof h->spheres.sum);
    MUST(nlist, nlist_sum(&h->pairs, &how, dem_spheres_fn, &h->system, sum), "the forces");
    MUST(nlist, nlist_sum(&h->walls, &how, dem_triangle_fn, &h->system, sum), "the forces");
    for (i = 0; i < SPHERES; i++) move_sphere(&h->system, &h->spheres, i);
}

static void advance_serial(heap *h, long steps)
{
    for (; steps > 0; steps--) step(h);
}

#ifndef __CUDACC__ /* pyramid.cu checks its steps by those above */
static void advance(heap *h, long steps) { advance_serial(h, steps); }
#endif

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

typedef struct options {
    double mu, seconds;
    int32_t check;
    const char *out;
} options;

static options parse(int argc, char **argv)
{
    options o = {0.75, 10, 0, "build/pyramid.png"};
    const option_line table[] = {
        DOUBLE("--mu", "M", &o.mu, 0, 10, "friction (default 0.75)"),
        DOUBLE("--seconds", "T", &o.seconds, 0.001, 1000,
               "of the run with history (default 10); without it is 2 at most"),
        TEXT("--out", "FILE", &o.out, "the pictures (default build/pyramid.png)"),
        FLAG("--check", &o.check, "compare with the same steps of pyramid.c, second by second"),
        OPTIONS_END};
    options_read(argc, argv, table, NULL,
                 "Four spheres in a pyramid, with and without contact history.", NULL);
    return o;
}

/* The run with or without history. By another order of sums, and by fused products, heaps come to
   lie some 1e-10 radii apart. */
static heap *run_checked(const options *o, int history, picture *c)
{
    double const seconds = history ? o->seconds : fmin(o->seconds, SHOTS - 1);
    heap *h = heap_new(o->mu, history), *beside = o->check ? heap_new(o->mu, history) : NULL;
    double const off = run(h, beside, seconds, c, history ? PANEL_HIGH + CAPTION : 0) / radius;
    if (beside) heap_free(beside);
    if (!(off < 1e-7)) stop(1, "the heap is off the serial one by %g radii", off);
    return h;
}

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    picture c = picture_new(SHOTS * PANEL_WIDE, 2 * (PANEL_HIGH + CAPTION), gray(1));
    heap *without = run_checked(&o, 0, &c), *with = run_checked(&o, 1, &c);
    picture_save_halved(&c, o.out);
    printf("picture: %s\n", o.out);
    print_contacts(with);
    puts("exact: below on floor normal 1.33333 friction 0.07946, below on top normal 0.33333 "
         "friction 0.31784");
    print_figures(with, without);
    heap_free(with);
    heap_free(without);
    return 0;
}
