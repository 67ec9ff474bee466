/* pyramid.c - four spheres stacked on a floor: with contact history they stay, without they roll away.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: the test of source 004 (Kureck 2016, section 6.2.2, figure 6.4). Three spheres of 10 mm lie on a floor, the
   fourth on them. What holds them is friction at rest, and that is a spring that remembers how far two surfaces were pushed along
   each other: the history of the contact. Friction without memory only slows down, and the heap flows apart.

                        .---.           The forces can be worked out on paper. Let a = 35.26 degrees be the angle between the
                       /  3  \          vertical and the line from the middle of 0 to that of 3, W the weight of a sphere. Those
                    .--\     /--.       below touch the floor and sphere 3, and not each other: that they do not begin to turn
                   / 0  '---'  1 \      asks for the same friction f in both places.
                   \     / \     /
                 ---'---'---'---'---    between 0 and 3:   N = W/3         f = N tan(a/2) = 0.3178 N
                                        under 0:           N = 4/3 W       f = 0.3178 W/3

   So with friction below 0.3178 no history can hold them: try --mu 0.3 and --mu 0.34.

   The spheres find each other and the triangles of the floor through two lists of nlist.h, built anew in each of 130 thousand
   steps, with their history. All is in double: in float the heap with history creeps by 0.003 radii a second, as a sphere that
   trembles moves by less than the last digit of its position, and that rounding does not forget evenly.

   How to run it:

       make build/pyramid && build/pyramid             (from the top of the repository), or
       cc -O3 examples/pyramid.c -o pyramid -lstb -lm
       ./pyramid --help

   What to look at: >>step below, 50 lines. */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef NLIST_REAL
#define NLIST_REAL double
#define LBVH_REAL double
#endif
#define LBVH_IMPLEMENTATION
#include "../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../nlist.h"

#include "common/dem.h"
#include "dem_draw.h"

/* ------------------------------------------------------------------------------------------------
   >>options
   ------------------------------------------------------------------------------------------------ */

typedef struct options {
    double mu, seconds;
    const char *out;
} options;

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static void stop(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("pyramid: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void help(void)
{
    puts("usage: pyramid [options]\n\n"
         "Four spheres in a pyramid, with and without history of their contacts. Options:\n\n"
         "  --mu M           friction (default 0.75)\n"
         "  --seconds T      how long to watch it with history (default 10); without it is 2\n"
         "  --out FILE       the pictures (default build/pyramid.png)\n"
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
    options o = {0.75, 10, "build/pyramid.png"};
    while (*++argument) {
        const char *name = *argument;
        if (strcmp(name, "--help") == 0) help();
        else if (strcmp(name, "--mu") == 0) o.mu = number(name, *++argument, 0, 10);
        else if (strcmp(name, "--seconds") == 0) o.seconds = number(name, *++argument, 2, 1000);
        else if (strcmp(name, "--out") == 0) { if (!(o.out = *++argument)) stop("--out needs a value (--help tells)"); }
        else stop("unknown option %s (--help lists them)", name);
    }
    return o;
}

/* ------------------------------------------------------------------------------------------------
   >>heap: spheres and floor. y is up, as in the source.
   ------------------------------------------------------------------------------------------------ */

/* Steel, made softer: a sphere sinks into the floor by a thousandth of its radius under its own weight, a contact lasts 2 ms. */
static double const radius = 0.01, density = 7800, gravity = 9.81, dent = 1e-5, e = 0.95, beta = 0.35;

enum { SPHERES = 4, TOP = 3, LINES = 21, STEPS_PER_CONTACT = 40 };

typedef struct heap {
    dem_system system;
    dem_real pos[4 * SPHERES], vel[4 * SPHERES], spin[4 * SPHERES], sum[DEM_SUMS * SPHERES];
    dem_real start[4 * SPHERES];        /* pos at the start */
    dem_real axes[SPHERES][3][3];       /* how each sphere has turned: for the pictures only */
    dem_real corner[3 * LINES * LINES];
    int32_t index[6 * (LINES - 1) * (LINES - 1)];
    lbvh floor;
    nlist pairs, walls;                 /* spheres and spheres, spheres and triangles */
    double moved;                       /* the furthest that any sphere ever was from its start */
} heap;

static void must(nlist_result result)
{
    if (result != NLIST_OK) stop("%s", nlist_result_text(result));
}

static void place_spheres(heap *h)
{
    static double const place[SPHERES][3] = { /* in radii */
        {0, 1, 0}, {2, 1, 0}, {1, 1, 1.7320508075688772}, {1, 1 + 1.6329931618554521, 0.57735026918962576}
    };
    int i, a;
    for (i = 0; i < SPHERES; i++) {
        for (a = 0; a < 3; a++) {
            h->pos[4 * i + a] = (dem_real)(radius * place[i][a]);
            h->axes[i][a][a] = 1;
        }
        h->pos[4 * i + 3] = (dem_real)radius;
        h->vel[4 * i + 3] = (dem_real)(1 / dem_mass(radius, density));
    }
    memcpy(h->start, h->pos, sizeof h->start);
}

/* Lines at 0, 1, 2, 4 ... 512 radii to both sides: the spheres lie on corners and edges, and have room to roll. */
static double line_at(int k)
{
    int const from_middle = abs(k - LINES / 2);
    double const at = from_middle ? radius * (double)(1 << (from_middle - 1)) : 0;
    return k < LINES / 2 ? -at : at;
}

static void make_floor(heap *h)
{
    lbvh_desc desc;
    int32_t x, z, k = 0;
    memset(&desc, 0, sizeof desc);
    for (z = 0; z < LINES; z++)
        for (x = 0; x < LINES; x++) {
            h->corner[3 * (z * LINES + x)] = (dem_real)line_at(x);
            h->corner[3 * (z * LINES + x) + 2] = (dem_real)line_at(z);
        }
    for (z = 0; z + 1 < LINES; z++)
        for (x = 0; x + 1 < LINES; x++) {
            int32_t const a = z * LINES + x, b = a + 1, c = b + LINES, d = c - 1, two[6] = {a, c, b, a, d, c};
            memcpy(h->index + 6 * k++, two, sizeof two);
        }
    h->system.mesh.vertices = h->corner;
    h->system.mesh.vertex_count = desc.vertices = LINES * LINES;
    h->system.mesh.indices = desc.indices = h->index;
    h->system.mesh.triangles = 2 * k;
    desc.kind = LBVH_TRIANGLES;
    if (lbvh_build(&h->floor, &desc, h->corner, 0, 2 * k) != LBVH_OK) stop("the floor has no tree");
}

static heap *heap_new(const options *o, int history)
{
    heap *h = (heap *)calloc(1, sizeof *h);
    double const mass = dem_mass(radius, density);
    if (!h) stop("out of memory");
    h->system.n = SPHERES;
    h->system.pos = h->pos;
    h->system.vel = h->vel;
    h->system.spin = h->spin;
    h->system.between = h->system.walls = dem_material_of(mass * gravity / dent, e, beta, o->mu);
    h->system.gravity[1] = (dem_real)-gravity;
    h->system.dt = (dem_real)(dem_contact_time(&h->system.between, mass / 2) / STEPS_PER_CONTACT);
    h->system.history_off = !history;
    place_spheres(h);
    make_floor(h);
    return h;
}

static void heap_free(heap *h)
{
    nlist_free(&h->pairs);
    nlist_free(&h->walls);
    lbvh_free(&h->floor);
    free(h);
}

/* ------------------------------------------------------------------------------------------------
   >>step
   ------------------------------------------------------------------------------------------------ */

static void build_lists(heap *h)
{
    nlist_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.history = DEM_HISTORY;
    desc.half = 1;
    desc.radius = (dem_real)(2 * radius);
    must(nlist_build_brute(&h->pairs, &desc, h->pos, DEM_STRIDE, SPHERES));
    desc.half = 0;
    desc.radius = (dem_real)radius;
    must(nlist_build_mesh(&h->walls, &desc, &h->floor, &h->system.mesh, h->pos, DEM_STRIDE, SPHERES));
}

/* axes turn with the sphere; then they are made to stand upright on each other again. */
static void turn(dem_real axes[3][3], const dem_real *spin, dem_real dt)
{
    dem_real by[3];
    int a;
    for (a = 0; a < 2; a++) {
        dem_cross(spin, axes[a], by);
        dem_add(axes[a], dt, by);
    }
    dem_add(axes[1], -dem_dot(axes[0], axes[1]) / dem_dot(axes[0], axes[0]), axes[0]);
    for (a = 0; a < 2; a++) dem_add(axes[a], 1 / dem_root(dem_dot(axes[a], axes[a])) - 1, axes[a]);
    dem_cross(axes[0], axes[1], axes[2]);
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
    must(nlist_sum(&h->pairs, &how, dem_spheres_fn, &h->system, h->sum));
    must(nlist_sum(&h->walls, &how, dem_triangle_fn, &h->system, h->sum));
    for (i = 0; i < SPHERES; i++) {
        dem_move(&h->system, i, h->sum + DEM_SUMS * i);
        turn(h->axes[i], h->spin + 4 * i, h->system.dt);
        h->moved = fmax(h->moved, moved(h, i));
    }
}

/* ------------------------------------------------------------------------------------------------
   >>picture: rays through each pixel, four spheres and a floor
   ------------------------------------------------------------------------------------------------ */

enum { PANEL_WIDE = 800, PANEL_HIGH = 520, CAPTION = 60, SHOTS = 3 }; /* halved in the end */

typedef struct eye { double from[3], right[3], up[3], ahead[3]; } eye;

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void to_unit(double a[3])
{
    double const length = sqrt(dot(a, a));
    int k;
    for (k = 0; k < 3; k++) a[k] /= length;
}

/* From the front and above, at the middle of the heap, as far off as shows a few radii around it. */
static eye look(void)
{
    static double const at[3] = {1, 0.9, 0.577}, from[3] = {5.5, 8, -15.5};
    eye view;
    int k;
    for (k = 0; k < 3; k++) {
        view.from[k] = radius * from[k];
        view.ahead[k] = radius * (at[k] - from[k]);
    }
    to_unit(view.ahead);
    view.right[0] = -view.ahead[2]; /* ahead x (0, 1, 0) */
    view.right[1] = 0;
    view.right[2] = view.ahead[0];
    to_unit(view.right);
    view.up[0] = view.right[1] * view.ahead[2] - view.right[2] * view.ahead[1];
    view.up[1] = view.right[2] * view.ahead[0] - view.right[0] * view.ahead[2];
    view.up[2] = view.right[0] * view.ahead[1] - view.right[1] * view.ahead[0];
    return view;
}

/* The first sphere on the ray, -1 = none; *t: how far. */
static int first_sphere(const heap *h, const double from[3], const double along[3], double *t)
{
    int i, k, found = -1;
    for (i = 0; i < SPHERES; i++) {
        double d[3], middle, root;
        for (k = 0; k < 3; k++) d[k] = (double)h->pos[4 * i + k] - from[k];
        middle = dot(d, along);
        root = middle * middle - dot(d, d) + radius * radius;
        if (root <= 0) continue;
        middle -= sqrt(root);
        if (middle > 1e-9 && (found < 0 || middle < *t)) { *t = middle; found = i; }
    }
    return found;
}

/* Two tones, like a ball of eight patches: so one sees it turn. */
static dem_color paint(const heap *h, int i, const double n[3])
{
    static double const tone[SPHERES][3] = {{0.25, 0.5, 0.8}, {0.35, 0.65, 0.4}, {0.9, 0.65, 0.2}, {0.8, 0.25, 0.2}};
    int k, patch = 0;
    for (k = 0; k < 3; k++) {
        const dem_real *axis = h->axes[i][k];
        patch ^= n[0] * (double)axis[0] + n[1] * (double)axis[1] + n[2] * (double)axis[2] > 0;
    }
    if (patch) return dem_color_of(tone[i][0], tone[i][1], tone[i][2]);
    return dem_color_of(0.5 + 0.5 * tone[i][0], 0.5 + 0.5 * tone[i][1], 0.5 + 0.5 * tone[i][2]);
}

/* The floor is seen as squares of two radii, and fades into the distance. */
static dem_color floor_paint(double x, double z)
{
    int const odd = ((int)floor(x / (2 * radius)) + (int)floor(z / (2 * radius))) & 1;
    double const far = fmin(1, hypot(x - radius, z - radius) / (40 * radius)), tone = odd ? 0.86 : 0.93;
    return dem_color_of(tone + (0.97 - tone) * far, tone + (0.97 - tone) * far, tone + (0.98 - tone) * far);
}

static dem_color ray_color(const heap *h, const double from[3], const double along[3])
{
    double light[3] = {0.5, 1, -0.45}, at[3], n[3] = {0, 1, 0}, t, other, bright;
    dem_color color;
    int const i = first_sphere(h, from, along, &t);
    int k;
    if (i < 0 && along[1] >= 0) return dem_color_of(0.97, 0.97, 0.98);
    if (i < 0) t = -from[1] / along[1];
    for (k = 0; k < 3; k++) {
        at[k] = from[k] + t * along[k];
        if (i >= 0) n[k] = (at[k] - (double)h->pos[4 * i + k]) / radius;
    }
    color = i >= 0 ? paint(h, i, n) : floor_paint(at[0], at[2]);
    to_unit(light);
    bright = fmax(0, dot(n, light));
    for (k = 0; k < 3; k++) at[k] += 1e-5 * n[k]; /* not in the shadow of itself */
    if (first_sphere(h, at, light, &other) >= 0) bright = 0;
    bright = i >= 0 ? 0.35 + 0.65 * bright : bright > 0 ? 1 : 0.72;
    return dem_color_of(color.r * bright, color.g * bright, color.b * bright);
}

static void draw_panel(dem_canvas *c, int left, int top, const heap *h, const char *caption)
{
    eye const view = look();
    int x, y, k;
    for (y = 0; y < PANEL_HIGH; y++)
        for (x = 0; x < PANEL_WIDE; x++) {
            double const right = 0.6 * (x + 0.5 - PANEL_WIDE / 2) / PANEL_WIDE, up = 0.6 * (PANEL_HIGH / 2 - y - 0.5) / PANEL_WIDE;
            double along[3];
            for (k = 0; k < 3; k++) along[k] = view.ahead[k] + right * view.right[k] + up * view.up[k];
            to_unit(along);
            dem_put(c, left + x, top + y, ray_color(h, view.from, along));
        }
    dem_text(c, left + 24, top + PANEL_HIGH + 16, 4, dem_color_of(0.2, 0.22, 0.26), caption);
}

/* ------------------------------------------------------------------------------------------------
   >>run
   ------------------------------------------------------------------------------------------------ */

/* Simulates `seconds`, a line of text for each, and draws at 0, 1 and 2 s into a row of panels. */
static void run(heap *h, double seconds, dem_canvas *c, int top)
{
    const char *what = h->system.history_off ? "without history" : "with history";
    double const dt = (double)h->system.dt;
    long const steps = lround(seconds / dt);
    long k;
    int second = 0;
    char caption[64];
    for (k = 0; k <= steps; k++) {
        if ((double)k * dt >= second - 1e-9 || k == steps) {
            printf("%s %8.3f s: furthest from its start, so far: %.5f radii\n", what, (double)k * dt, h->moved / radius);
            fflush(stdout);
            snprintf(caption, sizeof caption, "%s, %d s", what, second);
            if (second < SHOTS) draw_panel(c, second * PANEL_WIDE, top, h, caption);
            second++;
        }
        if (k < steps) step(h);
    }
}

/* A contact of the list, in weights: the normal force, and what part of it friction takes. */
static void print_contact(int i, const char *other, const void *history, const dem_material *material)
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
    for (i = 0; i < SPHERES; i++) most = fmax(most, sqrt((double)dem_dot(h->vel + 4 * i, h->vel + 4 * i)));
    return most;
}

/* In radii: how far they went, with and without history, how high the top is; and the speed that is left, in m/s. */
static void print_figures(const heap *with, const heap *without)
{
    double const height = (double)with->pos[4 * TOP + 1], height_without = (double)without->pos[4 * TOP + 1];
    printf("figures: with %.5f without %.5f top_with %.5f top_without %.5f speed_with %.3g\n", with->moved / radius,
           without->moved / radius, height / radius, height_without / radius, fastest(with));
}

int main(int argc, char **argv)
{
    options const o = parse(argv);
    heap *with = heap_new(&o, 1), *without = heap_new(&o, 0);
    dem_canvas c;
    (void)argc;
    if (!dem_canvas_new(&c, SHOTS * PANEL_WIDE, 2 * (PANEL_HIGH + CAPTION), dem_color_of(1, 1, 1))) stop("out of memory");
    run(without, SHOTS - 1, &c, 0);
    run(with, o.seconds, &c, PANEL_HIGH + CAPTION);
    dem_halve(&c);
    if (!dem_save(&c, o.out)) stop("%s: could not be written: %s", o.out, strerror(errno));
    printf("picture: %s\n", o.out);
    print_contacts(with);
    puts("exact: below on floor normal 1.33333 friction 0.07946, below on top normal 0.33333 friction 0.31784");
    print_figures(with, without);
    free(c.rgb);
    heap_free(with);
    heap_free(without);
    return 0;
}
