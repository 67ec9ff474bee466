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
   anew in each of 130 thousand steps, with their history. All is in double: in float the heap with
   history creeps by 0.003 radii a second, as a sphere that trembles moves by less than the last
   digit of its position, and that rounding does not forget evenly.

   How to run it:

       make build/pyramid && build/pyramid             (from the top of the repository), or
       cc -O3 examples/pyramid.c -o pyramid -lstb -lm
       ./pyramid --mu 0.31

   What to look at: >>step below, 50 lines. pyramid.h has the heap and the pictures. */

#define PROGRAM "pyramid"
#include "common/base.h"
#include "common/options.h"

#ifndef NLIST_REAL
#define NLIST_REAL double
#define LBVH_REAL double
#endif
#define LBVH_IMPLEMENTATION
#include "../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../nlist.h"

#include "pyramid.h"

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

static void build_lists(heap *h)
{
    nlist_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.history = DEM_HISTORY;
    desc.half = 1;
    desc.radius = (dem_real)(2 * radius);
    MUST(nlist, nlist_build_brute(&h->pairs, &desc, h->pos, DEM_STRIDE, SPHERES), "the lists");
    desc.half = 0;
    desc.radius = (dem_real)radius;
    MUST(nlist, nlist_build_mesh(&h->walls, &desc, &h->floor, &h->system.mesh, h->pos, DEM_STRIDE,
                                 SPHERES), "the lists");
}

static double moved(const heap *h, int i)
{
    dem_real d[3] = {h->pos[4 * i], h->pos[4 * i + 1], h->pos[4 * i + 2]};
    dem_add(d, -1, h->start + 4 * i);
    return sqrt((double)dem_dot(d, d));
}

static void step(heap *h)
{
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    int i;
    build_lists(h);
    memset(h->sum, 0, sizeof h->sum);
    MUST(nlist, nlist_sum(&h->pairs, &how, dem_spheres_fn, &h->system, h->sum), "the forces");
    MUST(nlist, nlist_sum(&h->walls, &how, dem_triangle_fn, &h->system, h->sum), "the forces");
    for (i = 0; i < SPHERES; i++) {
        dem_move(&h->system, i, h->sum + DEM_SUMS * i);
        turn(h->axes[i], h->spin + 4 * i, h->system.dt);
        h->moved = fmax(h->moved, moved(h, i));
    }
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

/* Simulates `seconds`, a line of text for each, and draws at 0, 1 and 2 s into a row of panels. */
static void run(heap *h, double seconds, picture *c, int top)
{
    const char *what = h->system.history_off ? "without history" : "with history";
    double const dt = (double)h->system.dt;
    long const steps = lround(seconds / dt);
    long k;
    int second = 0;
    char caption[64];
    for (k = 0; k <= steps; k++) {
        if ((double)k * dt >= second - 1e-9 || k == steps) {
            printf("%s %8.3f s: furthest from its start, so far: %.5f radii\n", what,
                   (double)k * dt, h->moved / radius);
            fflush(stdout);
            snprintf(caption, sizeof caption, "%s, %d s", what, second);
            if (second < SHOTS) draw_panel(c, second * PANEL_WIDE, top, h, caption);
            second++;
        }
        if (k < steps) step(h);
    }
}

/* A contact of the list, in weights: the normal force, and what part of it friction takes. */
static void print_contact(int i, const char *other, const void *history,
                          const dem_material *material)
{
    const dem_real *spring = (const dem_real *)history;
    double const weight = dem_mass(radius, density) * gravity, normal = (double)spring[3];
    if (!(normal > 0)) return;
    printf("contact %d %s normal %.5f friction %.5f\n", i, other, normal / weight,
           (double)material->k_t * sqrt((double)dem_dot(spring, spring)) / normal);
}

static void print_contacts(const heap *h)
{
    int32_t i;
    for (i = 0; i < SPHERES; i++) {
        nlist_each pair = nlist_of(&h->pairs, i), wall = nlist_of(&h->walls, i);
        char other[16];
        while (nlist_next(&wall)) print_contact(i, "floor", wall.history, &h->system.walls);
        while (nlist_next(&pair)) {
            snprintf(other, sizeof other, "%d", (int)pair.id);
            print_contact(i, other, pair.history, &h->system.between);
        }
    }
}

static double fastest(const heap *h)
{
    double most = 0;
    int i;
    for (i = 0; i < SPHERES; i++)
        most = fmax(most, sqrt((double)dem_dot(h->vel + 4 * i, h->vel + 4 * i)));
    return most;
}

/* In radii: how far they went, with and without history, how high the top is; and the speed that
   is left, in m/s. */
static void print_figures(const heap *with, const heap *without)
{
    double const height = (double)with->pos[4 * TOP + 1],
                 height_without = (double)without->pos[4 * TOP + 1];
    printf("figures: with %.5f without %.5f top_with %.5f top_without %.5f speed_with %.3g\n",
           with->moved / radius, without->moved / radius, height / radius, height_without / radius,
           fastest(with));
}

int main(int argc, char **argv)
{
    double mu = 0.75, seconds = 10;
    const char *out = "build/pyramid.png";
    const option_line table[] = {
        DOUBLE("--mu", "M", &mu, 0, 10, "friction (default 0.75)"),
        DOUBLE("--seconds", "T", &seconds, 2, 1000,
               "of the run with history (default 10); without it is 2"),
        TEXT("--out", "FILE", &out, "the pictures (default build/pyramid.png)"), OPTIONS_END};
    picture c = picture_new(SHOTS * PANEL_WIDE, 2 * (PANEL_HIGH + CAPTION), gray(1));
    heap *with, *without;
    options_read(argc, argv, table, NULL,
                 "Four spheres in a pyramid, with and without contact history.", NULL);
    with = heap_new(mu, 1);
    without = heap_new(mu, 0);
    run(without, SHOTS - 1, &c, 0);
    run(with, seconds, &c, PANEL_HIGH + CAPTION);
    picture_save_halved(&c, out);
    printf("picture: %s\n", out);
    print_contacts(with);
    puts("exact: below on floor normal 1.33333 friction 0.07946, below on top normal 0.33333 "
         "friction 0.31784");
    print_figures(with, without);
    heap_free(with);
    heap_free(without);
    return 0;
}
