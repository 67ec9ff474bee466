/* pyramid.h - what pyramid.c and pyramid.cu need besides their steps: the heap at the start, the
   pictures.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PYRAMID_H
#define PYRAMID_H

#include "../common/dem.h"
#include "../common/picture.h"

/* -------------------------------------------------------------------------------------------------
   >>heap: spheres and floor. y is up, as in the source.
   ---------------------------------------------------------------------------------------------- */

/* Steel, made softer: a sphere sinks into the floor by a thousandth of its radius under its own
   weight, a contact lasts 2 ms. */
static double const radius = 0.01, density = 7800, gravity = 9.81, dent = 1e-5, e = 0.95,
                    beta = 0.35;

enum { SPHERES = 4, TOP = 3, LINES = 21, STEPS_PER_CONTACT = 40 };

/* Only numbers, so that a GPU takes a copy of it whole. */
typedef struct heap_spheres {
    dem_real pos[4 * SPHERES], vel[4 * SPHERES], spin[4 * SPHERES], sum[DEM_SUMS * SPHERES];
    dem_real start[4 * SPHERES];        /* pos at the start */
    dem_real axes[SPHERES][3][3];       /* how each sphere has turned: for the pictures only */
    dem_real moved[SPHERES];            /* the furthest that each ever was from its start */
} heap_spheres;

typedef struct heap {
    dem_system system;
    heap_spheres spheres;
    dem_real corner[3 * LINES * LINES];
    int32_t index[6 * (LINES - 1) * (LINES - 1)];
    lbvh floor;
    nlist pairs, walls;                 /* spheres and spheres, spheres and triangles */
} heap;

static void place_spheres(heap_spheres *s)
{
    static double const place[SPHERES][3] = {/* in radii */
                                             {0, 1, 0},
                                             {2, 1, 0},
                                             {1, 1, 1.7320508075688772},
                                             {1, 1 + 1.6329931618554521, 0.57735026918962576}};
    int i, a;
    for (i = 0; i < SPHERES; i++) {
        for (a = 0; a < 3; a++) {
            s->pos[4 * i + a] = (dem_real)(radius * place[i][a]);
            s->axes[i][a][a] = 1;
        }
        s->pos[4 * i + 3] = (dem_real)radius;
        s->vel[4 * i + 3] = (dem_real)(1 / dem_mass(radius, density));
    }
    memcpy(s->start, s->pos, sizeof s->start);
}

/* Lines at 0, 1, 2, 4 ... 512 radii to both sides: the spheres lie on corners and edges, and
   have room to roll. */
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
            int32_t const a = z * LINES + x, b = a + 1, c = b + LINES, d = c - 1,
                          two[6] = {a, c, b, a, d, c};
            memcpy(h->index + 6 * k++, two, sizeof two);
        }
    h->system.mesh.vertices = h->corner;
    h->system.mesh.vertex_count = desc.vertices = LINES * LINES;
    h->system.mesh.indices = desc.indices = h->index;
    h->system.mesh.triangles = 2 * k;
    desc.kind = LBVH_TRIANGLES;
    MUST(lbvh, lbvh_build(&h->floor, &desc, h->corner, 0, 2 * k), "the tree of the floor");
}

static heap *heap_new(double mu, int history)
{
    heap *h = (heap *)zeros(1, sizeof *h);
    double const mass = dem_mass(radius, density);
    h->system.n = SPHERES;
    h->system.pos = h->spheres.pos;
    h->system.vel = h->spheres.vel;
    h->system.spin = h->spheres.spin;
    h->system.between = h->system.walls = dem_material_of(mass * gravity / dent, e, beta, mu);
    h->system.gravity[1] = (dem_real)-gravity;
    h->system.dt = (dem_real)(dem_contact_time(&h->system.between, mass / 2) / STEPS_PER_CONTACT);
    h->system.history_off = !history;
    place_spheres(&h->spheres);
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

/* axes turn with the sphere; then they are made to stand upright on each other again. */
DEM_FN void turn(dem_real axes[3][3], const dem_real *spin, dem_real dt)
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

/* -------------------------------------------------------------------------------------------------
   >>picture: rays through each pixel, four spheres and a floor
   ---------------------------------------------------------------------------------------------- */

enum { PANEL_WIDE = 800, PANEL_HIGH = 520, CAPTION = 60, SHOTS = 3 }; /* halved in the end */

typedef struct eye { double from[3], right[3], up[3], ahead[3]; } eye;

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void to_unit(double a[3])
{
    double const length = sqrt(dot(a, a));
    int k;
    for (k = 0; k < 3; k++) a[k] /= length;
}

/* From the front and above, at the middle of the heap, as far off as shows a few radii around
   it. */
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
        for (k = 0; k < 3; k++) d[k] = (double)h->spheres.pos[4 * i + k] - from[k];
        middle = dot(d, along);
        root = middle * middle - dot(d, d) + radius * radius;
        if (root <= 0) continue;
        middle -= sqrt(root);
        if (middle > 1e-9 && (found < 0 || middle < *t)) { *t = middle; found = i; }
    }
    return found;
}

/* Two tones, like a ball of eight patches: so one sees it turn. */
static rgb paint(const heap *h, int i, const double n[3])
{
    static double const tone[SPHERES][3] = {
        {0.25, 0.5, 0.8}, {0.35, 0.65, 0.4}, {0.9, 0.65, 0.2}, {0.8, 0.25, 0.2}};
    int k, patch = 0;
    for (k = 0; k < 3; k++) {
        const dem_real *axis = h->spheres.axes[i][k];
        patch ^= n[0] * (double)axis[0] + n[1] * (double)axis[1] + n[2] * (double)axis[2] > 0;
    }
    if (patch) return rgb_of(tone[i][0], tone[i][1], tone[i][2]);
    return rgb_of(0.5 + 0.5 * tone[i][0], 0.5 + 0.5 * tone[i][1], 0.5 + 0.5 * tone[i][2]);
}

/* The floor is seen as squares of two radii, and fades into the distance. */
static rgb floor_paint(double x, double z)
{
    int const odd = ((int)floor(x / (2 * radius)) + (int)floor(z / (2 * radius))) & 1;
    double const far = fmin(1, hypot(x - radius, z - radius) / (40 * radius)),
                 tone = odd ? 0.86 : 0.93;
    return rgb_of(tone + (0.97 - tone) * far, tone + (0.97 - tone) * far,
                  tone + (0.98 - tone) * far);
}

static rgb ray_color(const heap *h, const double from[3], const double along[3])
{
    double light[3] = {0.5, 1, -0.45}, at[3], n[3] = {0, 1, 0}, t, other, bright;
    rgb color;
    int const i = first_sphere(h, from, along, &t);
    int k;
    if (i < 0 && along[1] >= 0) return rgb_of(0.97, 0.97, 0.98);
    if (i < 0) t = -from[1] / along[1];
    for (k = 0; k < 3; k++) {
        at[k] = from[k] + t * along[k];
        if (i >= 0) n[k] = (at[k] - (double)h->spheres.pos[4 * i + k]) / radius;
    }
    color = i >= 0 ? paint(h, i, n) : floor_paint(at[0], at[2]);
    to_unit(light);
    bright = fmax(0, dot(n, light));
    for (k = 0; k < 3; k++) at[k] += 1e-5 * n[k]; /* not in the shadow of itself */
    if (first_sphere(h, at, light, &other) >= 0) bright = 0;
    bright = i >= 0 ? 0.35 + 0.65 * bright : bright > 0 ? 1 : 0.72;
    return rgb_of(color.r * bright, color.g * bright, color.b * bright);
}

static void draw_panel(picture *c, int left, int top, const heap *h, const char *caption)
{
    eye const view = look();
    int x, y, k;
    for (y = 0; y < PANEL_HIGH; y++)
        for (x = 0; x < PANEL_WIDE; x++) {
            double const right = 0.6 * (x + 0.5 - PANEL_WIDE / 2) / PANEL_WIDE,
                         up = 0.6 * (PANEL_HIGH / 2 - y - 0.5) / PANEL_WIDE;
            double along[3];
            for (k = 0; k < 3; k++)
                along[k] = view.ahead[k] + right * view.right[k] + up * view.up[k];
            to_unit(along);
            draw_pixel(c, left + x, top + y, ray_color(h, view.from, along), 1);
        }
    draw_text(c, left + 24, top + PANEL_HIGH + 16, 4, rgb_of(0.2, 0.22, 0.26), caption);
}

#endif /* PYRAMID_H */
