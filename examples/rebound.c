/* rebound.c - a steel sphere hits a wall at different angles: what the history of a contact is good for, in one collision.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the test of source 004 (Kureck 2016, section 6.2.2, table 6.1). A sphere that does not spin hits a wall with speed
   v_n into the wall and v_t along it, and leaves with v_n' (negative) and v_t', all of its contact point. From impulses alone
   follows equation 6.1, with e and beta the parts of the two speeds that are left, and mu the friction:

       it rolls, as friction holds:    -v_t'/v_n' = -beta/e v_t/v_n
       it slides all the time:         -v_t'/v_n' = 1/e v_t/v_n - 7/2 mu (1 + 1/e)

   With history the simulation lies on both lines. Without, friction can slow the surface down but never turn it round, and the
   first line is missed altogether.

   How it is simulated: with the force law of dem.h, against a plane, whose history the sphere keeps, and against a mesh through
   nlist_build_mesh. The triangles are so small that the contact runs over several edges in one collision: that nothing of it is
   seen is the work of the list, which hands the history on from triangle to triangle.

   How to run it:

       make build/rebound && build/rebound             (from the top of the repository), or
       cc -O3 examples/rebound.c -o rebound -lstb -lm
       ./rebound --e 0.8 --beta 0.5 --mu 0.3 --out other.png
       ./rebound --help

   What to look at: >>collision below, 60 lines. */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LBVH_IMPLEMENTATION
#include "../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../nlist.h"

#include "dem.h"
#include "dem_draw.h"

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

typedef struct options {
    double e, beta, mu;
    int steps;          /* time steps of a contact */
    const char *out;
} options;

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static void stop(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("rebound: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void help(void)
{
    puts("usage: rebound [options]\n\n"
         "A sphere hits a wall at v_t/v_n from 0 to 9, with and without history of the contact. Options:\n\n"
         "  --e E            part of the speed along the normal that is left (default 0.95)\n"
         "  --beta B         part of the speed along the wall that is left, turned round, where friction holds (default 0.35)\n"
         "  --mu M           friction (default 0.75)\n"
         "  --steps N        time steps of one contact (default 200)\n"
         "  --out FILE       the plot (default build/rebound.png)\n"
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

static options parse(char **argument)
{
    options o = {0.95, 0.35, 0.75, 200, "build/rebound.png"};
    while (*++argument) {
        const char *name = *argument;
        if (strcmp(name, "--help") == 0) help();
        else if (strcmp(name, "--e") == 0) o.e = number(name, *++argument, 0.1, 1);
        else if (strcmp(name, "--beta") == 0) o.beta = number(name, *++argument, 0.01, 1);
        else if (strcmp(name, "--mu") == 0) o.mu = number(name, *++argument, 0, 10);
        else if (strcmp(name, "--steps") == 0) o.steps = (int)number(name, *++argument, 20, 100000);
        else if (strcmp(name, "--out") == 0) { if (!(o.out = *++argument)) stop("--out needs a value (--help tells)"); }
        else stop("unknown option %s (--help lists them)", name);
    }
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>wall: the same wall z = 0 twice, a plane and a mesh
   ------------------------------------------------------------------------------------------------ */

/* A sphere of 10 mm hits at 1 m/s, and is pressed in by a thousandth of its radius: stiff enough for the exact lines, whose sphere
   keeps its shape, and coarse enough for floats. The contact lasts 31 microseconds. */
static double const radius = 0.01, density = 7800, v_n = 1, dent = 1e-5;

/* At v_t/v_n = 9 the contact runs for 0.28 mm, askew, over 6 edges. What the sphere covers of the wall has a radius of
   sqrt(2 radius dent) = 0.45 mm, 100 triangles. */
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

static void must(nlist_result result)
{
    if (result != NLIST_OK) stop("%s", nlist_result_text(result));
}

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
    lbvh_result result;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    desc.indices = w->index;
    desc.vertices = w->system.mesh.vertex_count;
    result = lbvh_build(&w->tree, &desc, w->corner, 0, w->system.mesh.triangles);
    if (result != LBVH_OK) stop("the tree: %s", lbvh_result_text(result));
}

static wall *wall_new(const options *o)
{
    wall *w = (wall *)calloc(1, sizeof *w);
    double const mass = dem_mass(radius, density);
    if (!w) stop("out of memory");
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

static void wall_free(wall *w)
{
    nlist_free(&w->list);
    lbvh_free(&w->tree);
    free(w);
}

/* ------------------------------------------------------------------------------------------------
   >>collision
   ------------------------------------------------------------------------------------------------ */

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
        must(nlist_build_mesh(&w->list, &w->desc, &w->tree, &w->system.mesh, w->pos, DEM_STRIDE, 1));
        must(nlist_sum(&w->list, &how, dem_triangle_fn, &w->system, sum));
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
    if (k == 3 * o->steps) stop("v_t/v_n = %g: the sphere does not leave the wall", ratio);
    x = (double)w->vel[0] - (double)w->spin[1] * radius;
    y = (double)w->vel[1] + (double)w->spin[0] * radius;
    return (x * askew[0] + y * askew[1]) / (double)w->vel[2];
}

/* ------------------------------------------------------------------------------------------------
   >>table
   ------------------------------------------------------------------------------------------------ */

/* Table 6.1 of the source, for the default e, beta and mu: v_t/v_n, and -v_t'/v_n' without and with history. */
enum { ROWS = 11 };
static double const table[ROWS][3] = {
    {0, 0, 0}, {1, 0.147, -0.368}, {2, 0.322, -0.723}, {3, 0.531, -1.066}, {3.5, -1, -1.180}, {4, 0.781, -1.125},
    {5, 1.087, -0.127}, {6, 1.476, 0.925}, {7, 2.029, 1.977}, {8, 3.029, 3.029}, {9, 4.081, 4.081}
};
static int const not_measured = 4; /* this row has no figure without history */

static double rolling(const options *o, double ratio) { return -o->beta / o->e * ratio; }
static double sliding(const options *o, double ratio) { return ratio / o->e - 3.5 * o->mu * (1 + 1 / o->e); }
static double exact(const options *o, double ratio) { return ratio > 0 ? fmax(rolling(o, ratio), sliding(o, ratio)) : 0; }

static int is_default(const options *o)
{
    return fabs(o->e - 0.95) < 1e-9 && fabs(o->beta - 0.35) < 1e-9 && fabs(o->mu - 0.75) < 1e-9;
}

static void print_row(const options *o, int k, const double seen[WAYS])
{
    char with[16] = "-", without[16] = "-";
    if (is_default(o)) snprintf(with, sizeof with, "%.3f", table[k][2]);
    if (is_default(o) && k != not_measured) snprintf(without, sizeof without, "%.3f", table[k][1]);
    printf("%7.1f %8.4f %9.4f %8.4f %9s %9.4f %8.4f %9s\n", table[k][0], exact(o, table[k][0]), seen[HISTORY],
           seen[HISTORY | MESH], with, seen[0], seen[MESH], without);
}

/* Prints the table; seen: [ROWS][WAYS]. */
static void print_table(wall *w, const options *o, double seen[ROWS][WAYS])
{
    int k, way;
    puts("-v_t'/v_n'              with history               without history\n"
         "v_t/v_n    exact     plane     mesh table 6.1     plane     mesh table 6.1");
    for (k = 0; k < ROWS; k++) {
        for (way = 0; way < WAYS; way++) seen[k][way] = collide(w, o, table[k][0], way);
        print_row(o, k, seen[k]);
    }
}

/* Where the line through two rows crosses 0. */
static double zero_between(double seen[ROWS][WAYS], int a, int b)
{
    double const ya = seen[a][HISTORY | MESH], yb = seen[b][HISTORY | MESH];
    return table[a][0] - ya * (table[b][0] - table[a][0]) / (yb - ya);
}

static void print_figures(const options *o, double seen[ROWS][WAYS])
{
    int const way = HISTORY | MESH;
    double apart = 0;
    int k;
    for (k = 0; k < ROWS; k++) {
        apart = fmax(apart, fabs(seen[k][HISTORY] - seen[k][way]));
        apart = fmax(apart, fabs(seen[k][0] - seen[k][MESH]));
    }
    printf("exact: rolling %.4f sliding %.4f zero %.4f\n", rolling(o, 1), sliding(o, 9) - sliding(o, 8),
           3.5 * o->mu * o->e * (1 + 1 / o->e));
    if (is_default(o)) puts("source: rolling -0.368 sliding 1.052 zero 5.119");
    printf("figures: rolling %.4f sliding %.4f zero %.4f mesh_from_plane %.6f\n", seen[1][way] - seen[0][way],
           seen[10][way] - seen[9][way], zero_between(seen, 6, 7), apart);
}

/* ------------------------------------------------------------------------------------------------
   >>plot
   ------------------------------------------------------------------------------------------------ */

enum { WIDE = 1800, HIGH = 1240, LEFT = 150, RIGHT = 1760, TOP = 90, BOTTOM = 1130 }; /* halved in the end */

static double const least = -2, most = 5;

static double at_x(double ratio) { return LEFT + (RIGHT - LEFT) * ratio / 9; }
static double at_y(double y) { return BOTTOM - (BOTTOM - TOP) * (y - least) / (most - least); }

static void draw_axes(dem_canvas *c)
{
    dem_color const ink = dem_color_of(0.2, 0.22, 0.26), faint = dem_color_of(0.88, 0.89, 0.91);
    char text[16];
    int k;
    for (k = 0; k <= 9; k++) {
        dem_line(c, at_x(k), TOP, at_x(k), BOTTOM, 1, faint);
        snprintf(text, sizeof text, "%d", k);
        dem_text(c, (int)at_x(k) - 8, BOTTOM + 20, 4, ink, text);
    }
    for (k = (int)least; k <= (int)most; k++) {
        dem_line(c, LEFT, at_y(k), RIGHT, at_y(k), k == 0 ? 2 : 1, k == 0 ? ink : faint);
        snprintf(text, sizeof text, "%2d", k);
        dem_text(c, LEFT - 56, (int)at_y(k) - 14, 4, ink, text);
    }
    dem_text(c, (LEFT + RIGHT) / 2 - 60, BOTTOM + 62, 4, ink, "v_t / v_n");
    dem_text(c, 30, 24, 4, ink, "-v_t' / v_n'  after a steel sphere has hit a wall");
}

/* y(ratio) as far as it is in the picture. */
static void draw_exact(dem_canvas *c, const options *o, double (*y)(const options *, double))
{
    double t;
    for (t = 0; t < 9; t += 0.02)
        if (y(o, t) >= least && y(o, t + 0.02) >= least && y(o, t) <= most && y(o, t + 0.02) <= most)
            dem_line(c, at_x(t), at_y(y(o, t)), at_x(t + 0.02), at_y(y(o, t + 0.02)), 1.5, dem_color_of(0.45, 0.47, 0.5));
}

static void draw_ring(dem_canvas *c, double x, double y, dem_color color)
{
    dem_disc(c, x, y, 13, color);
    dem_disc(c, x, y, 8, dem_color_of(1, 1, 1));
}

static void draw_simulation(dem_canvas *c, wall *w, const options *o, int way, dem_color color)
{
    double t, before = collide(w, o, 0, way), y;
    for (t = 0.25; t <= 9; t += 0.25, before = y) {
        y = collide(w, o, t, way);
        if (fmin(y, before) >= least && fmax(y, before) <= most)
            dem_line(c, at_x(t - 0.25), at_y(before), at_x(t), at_y(y), 4, color);
    }
}

static void draw_source(dem_canvas *c, int column, dem_color color)
{
    int k;
    for (k = 0; k < ROWS; k++)
        if (column == 2 || k != not_measured) draw_ring(c, at_x(table[k][0]), at_y(table[k][column]), color);
}

static void draw_legend(dem_canvas *c, int rings, dem_color with, dem_color without)
{
    dem_color const ink = dem_color_of(0.2, 0.22, 0.26);
    int const x = LEFT + 60, y = TOP + 40;
    dem_line(c, x, y + 12, x + 90, y + 12, 4, with);
    dem_text(c, x + 120, y, 4, ink, "with history, against a mesh");
    dem_line(c, x, y + 62, x + 90, y + 62, 4, without);
    dem_text(c, x + 120, y + 50, 4, ink, "without");
    dem_line(c, x, y + 112, x + 90, y + 112, 1.5, dem_color_of(0.45, 0.47, 0.5));
    dem_text(c, x + 120, y + 100, 4, ink, "exact: rolling, sliding");
    if (!rings) return;
    draw_ring(c, x + 25, y + 162, with);
    draw_ring(c, x + 65, y + 162, without);
    dem_text(c, x + 120, y + 150, 4, ink, "Kureck 2016, table 6.1");
}

static void draw(wall *w, const options *o)
{
    dem_color const with = dem_color_of(0.1, 0.35, 0.75), without = dem_color_of(0.9, 0.45, 0.05);
    dem_canvas c;
    if (!dem_canvas_new(&c, WIDE, HIGH, dem_color_of(1, 1, 1))) stop("out of memory");
    draw_axes(&c);
    draw_simulation(&c, w, o, MESH, without);
    draw_simulation(&c, w, o, MESH | HISTORY, with);
    draw_exact(&c, o, rolling);
    draw_exact(&c, o, sliding);
    if (is_default(o)) draw_source(&c, 1, without);
    if (is_default(o)) draw_source(&c, 2, with);
    draw_legend(&c, is_default(o), with, without);
    dem_halve(&c);
    if (!dem_save(&c, o->out)) stop("%s: could not be written: %s", o->out, strerror(errno));
    free(c.rgb);
}

int main(int argc, char **argv)
{
    options const o = parse(argv);
    wall *w = wall_new(&o);
    double seen[ROWS][WAYS];
    (void)argc;
    print_table(w, &o, seen);
    draw(w, &o);
    printf("picture: %s\n", o.out);
    print_figures(&o, seen);
    wall_free(w);
    return 0;
}
