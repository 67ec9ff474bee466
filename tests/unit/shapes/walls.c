/* walls.c - examples/common/dem_walls.h: bodies against triangles. A part of test_shapes.c.
   SPDX-License-Identifier: MIT OR Unlicense

   A surface made of triangles is compared with the planes that it lies in, step by step; a ridge
   and a corner with numbers on paper; energy with that of the start. */

#include "examples/common/dem_walls.h"

enum { MOST_TRIANGLES = 2000 };

/* One tablet, and the surface z = height(x, y) as triangles. */
typedef struct walls_case {
    dem_real pos[4], vel[4], spin[4], turn[4], momentum[4], sums[6];
    dem_real plane_spring[4 * DEM_PLANES];
    int32_t row_of, deep;
    dem_wall_row row[2];
    dem_wall_kept kept[2][DEM_SLOTS];
    dem_wall_state state;
    dem_real corner[9 * MOST_TRIANGLES];
    shape body;
    dem_bodies bodies;
    dem_walls walls;
} walls_case;

static walls_case *walls_case_new(double restitution, double friction)
{
    walls_case *c = (walls_case *)calloc(1, sizeof *c);
    dem_system *d = &c->bodies.base;
    double const inverse_mass = 1 / 3.0;
    int k;
    CHECK(c != NULL);
    c->body = shape_tablet(1, 0.4, 0.3, 0.15);
    d->n = 1;
    d->pos = c->pos;
    d->vel = c->vel;
    d->spin = c->spin;
    d->plane_history = c->plane_spring;
    d->walls = dem_material_of(3e4, restitution, 0.35, friction);
    d->dt = (dem_real)(dem_contact_time(&d->walls, 3) / 60);
    d->gravity[2] = -10;
    c->bodies.turn = c->turn;
    c->bodies.momentum = c->momentum;
    c->bodies.shapes = &c->body;
    c->bodies.deep = &c->deep;
    c->walls.row_of = &c->row_of;
    c->walls.row_room = 1;
    c->walls.kept_room = DEM_SLOTS;
    for (k = 0; k < 2; k++) {
        c->walls.row[k] = &c->row[k];
        c->walls.kept[k] = c->kept[k];
    }
    c->walls.state = &c->state;
    c->walls.turn[0] = c->turn[0] = 1;
    c->pos[3] = c->body.bound;
    c->vel[3] = (dem_real)inverse_mass;
    c->walls.mesh.vertices = c->corner;
    return c;
}

static void walls_case_free(walls_case *c)
{
    lbvh_free(&c->walls.tree);
    free(c);
}

static void add_triangle(walls_case *c, const double x[3], const double y[3], const double z[3])
{
    dem_real *to = c->corner + 9 * (size_t)c->walls.mesh.triangles++;
    int v;
    CHECK(c->walls.mesh.triangles <= MOST_TRIANGLES);
    for (v = 0; v < 3; v++) {
        to[3 * v] = (dem_real)x[v];
        to[3 * v + 1] = (dem_real)y[v];
        to[3 * v + 2] = (dem_real)z[v];
    }
}

static void build_walls(walls_case *c)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    CHECK(lbvh_build(&c->walls.tree, &desc, c->corner, 0, c->walls.mesh.triangles) == LBVH_OK);
}

/* The surfaces: z of x and y. */
enum { FLAT, VALLEY, RIDGE };
static double height_of(int kind, double x)
{
    if (kind == VALLEY) return fabs(x);
    return kind == RIDGE ? -0.5 * fabs(x) : 0;
}

/* A grid of squares from -half to half, of two triangles each, over the surface. jitter: of the
   corners inside, in squares; there diagonals are as dice say, else all alike. */
static void add_grid(walls_case *c, int kind, double half, int squares, double jitter,
                     uint64_t *seed)
{
    double x[32][32], y[32][32];
    int i, j, k;
    CHECK(squares < 32);
    for (i = 0; i <= squares; i++)
        for (j = 0; j <= squares; j++) {
            double const shift[2] = {jitter * (random_double(seed) - 0.5),
                                     jitter * (random_double(seed) - 0.5)};
            int const inside = i > 0 && j > 0 && i < squares && j < squares;
            x[i][j] = half * (2 * (i + (inside ? shift[0] : 0)) / squares - 1);
            y[i][j] = half * (2 * (j + (inside ? shift[1] : 0)) / squares - 1);
        }
    for (i = 0; i < squares; i++)
        for (j = 0; j < squares; j++) {
            static const int way[2][2][3] = {{{0, 1, 3}, {0, 3, 2}}, {{0, 1, 2}, {1, 3, 2}}};
            int const turned = jitter > 0 && random_double(seed) < 0.5;
            for (k = 0; k < 2; k++) {
                double a[3], b[3], h[3];
                int v;
                for (v = 0; v < 3; v++) {
                    int const at = way[turned][k][v], p = i + at % 2, q = j + at / 2;
                    a[v] = x[p][q];
                    b[v] = y[p][q];
                    h[v] = height_of(kind, a[v]);
                }
                add_triangle(c, a, b, h);
            }
        }
}

/* A dome of flat trapezoids: ridges and corners, no valley. */
static void add_dome(walls_case *c, int sides, int rings)
{
    int ring, side, k;
    for (ring = 0; ring < rings; ring++)
        for (side = 0; side < sides; side++)
            for (k = 0; k < 2; k++) {
                static const int at[2][3] = {{0, 1, 3}, {0, 3, 2}};
                double x[3], y[3], z[3];
                int v;
                for (v = 0; v < 3; v++) {
                    double const angle = 2 * TURN * ((side + at[k][v] % 2) % sides) / sides,
                                 r = 0.9 * (ring + at[k][v] / 2);
                    x[v] = r * cos(angle);
                    y[v] = r * sin(angle);
                    z[v] = -0.08 * r * r;
                }
                if (ring || k) add_triangle(c, x, y, z);
            }
}

/* Half of the plane are two triangles, half many: corners lie on an edge of a neighbour. */
static void add_hanging_corners(walls_case *c)
{
    double const large_x[3] = {0, -40, -40}, large_y[3] = {-40, -40, 40}, flat[3] = {0, 0, 0},
                 other_x[3] = {0, -40, 0}, other_y[3] = {-40, 40, 40};
    int k;
    add_triangle(c, large_x, large_y, flat);
    add_triangle(c, other_x, other_y, flat);
    for (k = 0; k < 160; k++) {
        double const x[3] = {0, 40, 0}, y[3] = {0.5 * k - 40, 0.5 * k - 40, 0.5 * k - 39.5},
                     far_x[3] = {40, 40, 0}, far_y[3] = {y[0], y[2], y[2]};
        add_triangle(c, x, y, flat);
        add_triangle(c, far_x, far_y, flat);
    }
}

/* ---- steps ---- */

/* All triangles push: returns the number of contacts. */
static int push_walls(walls_case *c)
{
    memset(c->sums, 0, sizeof c->sums);
    CHECK(dem_walls_find(&c->bodies, &c->walls) <= 1);
    dem_walls_push(&c->bodies, &c->walls, c->sums);
    CHECK(!c->deep && !c->state.lost);
    return c->state.kept[c->state.now];
}

static int step_walls(walls_case *c)
{
    int const contacts = push_walls(c);
    dem_body_move(&c->bodies, 0, c->sums);
    return contacts;
}

static void step_planes(walls_case *c)
{
    memset(c->sums, 0, sizeof c->sums);
    dem_body_planes(&c->bodies, 0, c->sums);
    dem_body_move(&c->bodies, 0, c->sums);
}

static double largest_of(const dem_real *a, const dem_real *b, int count)
{
    double most = 0;
    int k;
    for (k = 0; k < count; k++) most = fmax(most, fabs((double)a[k] - (double)b[k]));
    return most;
}

/* The same steps on triangles and on planes: how far they get apart. contacts: most at a time. */
static double follow(walls_case *c, walls_case *planes, int steps, int *contacts)
{
    double most = 0;
    *contacts = 0;
    while (steps-- > 0) {
        int const here = step_walls(c);
        step_planes(planes);
        if (here > *contacts) *contacts = here;
        most = fmax(most, largest_of(c->pos, planes->pos, 3));
        most = fmax(most, largest_of(c->turn, planes->turn, 4));
    }
    return most;
}

static void set_normal(dem_plane *plane, double x, double y, double z)
{
    plane->normal[0] = (dem_real)x;
    plane->normal[1] = (dem_real)y;
    plane->normal[2] = (dem_real)z;
}

static void start_at(walls_case *c, const double pos[3], const double vel[3], const double turn[4])
{
    int k;
    for (k = 0; k < 4; k++) c->turn[k] = (dem_real)turn[k];
    for (k = 0; k < 3; k++) {
        c->pos[k] = (dem_real)pos[k];
        c->vel[k] = (dem_real)vel[k];
    }
}

/* Five triangulations of one plane. */
static void make_plane(walls_case *c, int kind)
{
    uint64_t seed = random_seed(5);
    if (kind == 0) add_grid(c, FLAT, 40, 1, 0, &seed);
    if (kind == 1) add_grid(c, FLAT, 10, 20, 0, &seed);
    if (kind == 2) add_grid(c, FLAT, 10, 20, 0.8, &seed);
    if (kind == 3) add_grid(c, FLAT, 5, 31, 0.8, &seed); /* a dozen under the overlap */
    if (kind == 4) add_hanging_corners(c);
    build_walls(c);
}

enum { PLANES = 5 };

/* A tablet is thrown on its edge, slides, tumbles over and rolls: on triangles as on a plane. */
static void test_walls_plane(void **state)
{
    double const pos[3] = {-1, 0.3, 1.3}, vel[3] = {0.7, 0.3, -1}, turn[4] = {0.8, 0.36, 0.48, 0};
    int const steps = IS_FLOAT ? 1000 : SANITIZED ? 1500 : 4000;
    int kind, contacts;
    (void)state;
    for (kind = 0; kind < PLANES; kind++) {
        walls_case *c = walls_case_new(0.6, 0.5), *plane = walls_case_new(0.6, 0.5);
        make_plane(c, kind);
        plane->bodies.base.planes = 1;
        set_normal(&plane->bodies.base.plane[0], 0, 0, 1);
        start_at(c, pos, vel, turn);
        start_at(plane, pos, vel, turn);
        CHECK_BELOW(follow(c, plane, steps, &contacts), IS_FLOAT ? 1e-4 : 1e-9);
        CHECK(contacts == 1);
        walls_case_free(c);
        walls_case_free(plane);
    }
}

/* A case on a slope that is the level mesh, turned. */
static walls_case *slope_new(int kind, double slope, double friction)
{
    walls_case *c = walls_case_new(0.6, friction);
    make_plane(c, kind);
    c->walls.turn[0] = (dem_real)cos(slope / 2);
    c->walls.turn[2] = (dem_real)sin(slope / 2);
    return c;
}

/* It slides down a slope, across many edges, as on a plane. */
static void test_walls_slope(void **state)
{
    double const slope = 0.3, high = 0.5 - 1e-3, flat[4] = {cos(0.15), 0, sin(0.15), 0},
                 pos[3] = {high * sin(slope), 0, high * cos(slope)},
                 vel[3] = {1.5 * cos(slope), 0.4, -1.5 * sin(slope)};
    int const steps = IS_FLOAT || SANITIZED ? 1500 : 3000;
    int kind, contacts;
    (void)state;
    for (kind = 0; kind < PLANES; kind++) {
        walls_case *c = slope_new(kind, slope, 0.2), *plane = walls_case_new(0.6, 0.2);
        plane->bodies.base.planes = 1;
        set_normal(&plane->bodies.base.plane[0], sin(slope), 0, cos(slope));
        start_at(c, pos, vel, flat);
        start_at(plane, pos, vel, flat);
        CHECK_BELOW(follow(c, plane, steps, &contacts), IS_FLOAT ? 1e-4 : 1e-9);
        CHECK(contacts == 1 && c->pos[0] > 1);
        walls_case_free(c);
        walls_case_free(plane);
    }
}

/* Statics: on a slope a tablet rests on its cap, a sphere of radius R with the middle at k above
   that of the tablet, where its middle is right above the contact: R sin(slope) = k sin(lean). It
   is pressed in by its weight / stiffness. With history it keeps that place, without it slips. */
static void test_walls_rest(void **state)
{
    double const slope = 0.25, radius = 1.09 / 0.6, k = radius - 0.5,
                 lean = asin(radius * sin(slope) / k), deep = 30 * cos(slope) / 3e4,
                 turn[4] = {cos(lean / 2), 0, sin(lean / 2), 0}, none[3] = {0, 0, 0},
                 pos[3] = {(radius - deep) * sin(slope) - k * sin(lean), 0,
                           (radius - deep) * cos(slope) - k * cos(lean)};
    int const steps = 2500;
    int kind, step, history;
    (void)state;
    for (kind = 0; kind < PLANES; kind++)
        for (history = 0; history < 2; history++) {
            walls_case *c = slope_new(kind, slope, 0.5);
            double moved;
            c->bodies.base.history_off = !history;
            start_at(c, pos, none, turn);
            for (step = 0; step < steps; step++) CHECK(step_walls(c) == 1);
            moved = fabs((double)c->pos[0] - pos[0]) + fabs((double)c->pos[2] - pos[2]);
            if (history) CHECK_BELOW(moved, 0.01);
            else CHECK(moved > 0.05);
            walls_case_free(c);
        }
}

/* A valley of two slopes is two planes: two contacts. */
static void test_walls_valley(void **state)
{
    double const pos[3] = {0.1, 0.1, 1.9}, vel[3] = {0, 0.3, -1}, turn[4] = {0.8, 0.36, 0.48, 0},
                 across = sqrt(0.5);
    int const steps = SANITIZED ? 2500 : 4000;
    uint64_t seed = random_seed(5);
    int fine, contacts;
    (void)state;
    for (fine = 0; fine < 2; fine++) {
        walls_case *c = walls_case_new(0.6, 0.5), *planes = walls_case_new(0.6, 0.5);
        add_grid(c, VALLEY, 12, fine ? 22 : 2, 0, &seed);
        build_walls(c);
        planes->bodies.base.planes = 2;
        set_normal(&planes->bodies.base.plane[0], across, 0, across);
        set_normal(&planes->bodies.base.plane[1], -across, 0, across);
        start_at(c, pos, vel, turn);
        start_at(planes, pos, vel, turn);
        CHECK_BELOW(follow(c, planes, steps, &contacts), IS_FLOAT ? 1e-3 : 1e-9);
        CHECK(contacts == 2);
        walls_case_free(c);
        walls_case_free(planes);
    }
}

/* A tablet that lies on a ridge, and on the corner of a pyramid of any number of sides, touches it
   once, from above. */
static void test_walls_ridge(void **state)
{
    double const pos[3] = {0, 0.1, 0.49}, none[3] = {0, 0, 0}, flat[4] = {1, 0, 0, 0};
    uint64_t seed = random_seed(5);
    int sides, k;
    (void)state;
    for (sides = 2; sides < 12; sides++) {
        walls_case *c = walls_case_new(1, 0);
        start_at(c, pos, none, flat);
        if (sides == 2) {
            add_grid(c, RIDGE, 6, 8, 0, &seed);
        } else {
            for (k = 0; k < sides; k++) {
                double const a = TURN * 2 * k / sides, b = TURN * 2 * (k + 1) / sides;
                double const x[3] = {0, 5 * cos(a), 5 * cos(b)}, z[3] = {0, -2, -2},
                             y[3] = {0.1, 0.1 + 5 * sin(a), 0.1 + 5 * sin(b)};
                add_triangle(c, x, y, z);
            }
        }
        build_walls(c);
        CHECK(push_walls(c) == 1);
        CHECK_BELOW(fabs((double)c->sums[2] / 300 - 1), IS_FLOAT ? 1e-3 : 1e-9); /* 3e4 0.01 */
        CHECK_BELOW(fabs((double)c->sums[0]) + fabs((double)c->sums[1]), IS_FLOAT ? 1 : 1e-2);
        walls_case_free(c);
    }
}

static double energy_of(const walls_case *c)
{
    return 1.5 * (double)dem_dot(c->vel, c->vel) +
           0.5 * (double)dem_dot(c->spin, c->momentum) + 30 * (double)c->pos[2];
}

/* Without friction and damping a tablet that rebounds from the ridges and corners of a dome
   keeps its energy. */
static void test_walls_energy(void **state)
{
    int const throws = SANITIZED ? 2 : 20;
    uint64_t seed = random_seed(11);
    int throw_, k, most = 0, hits = 0;
    double worst = 0;
    (void)state;
    for (throw_ = 0; throw_ < throws; throw_++) {
        walls_case *c = walls_case_new(1, 0);
        double pos[3], vel[3], turn[4], length = 0, before;
        int step, touched = 0;
        add_dome(c, 9, 10);
        build_walls(c);
        for (k = 0; k < 4; k++) turn[k] = random_double(&seed) - 0.5;
        for (k = 0; k < 4; k++) length += turn[k] * turn[k];
        for (k = 0; k < 4; k++) turn[k] /= sqrt(length);
        for (k = 0; k < 3; k++) {
            pos[k] = k == 2 ? 1.4 : 2 * random_double(&seed) - 1;
            vel[k] = k == 2 ? -1 : 2 * random_double(&seed) - 1;
        }
        start_at(c, pos, vel, turn);
        before = energy_of(c);
        for (step = 0; step < 3000; step++) {
            int const contacts = step_walls(c);
            if (contacts > most) most = contacts;
            if (contacts) touched = 1;
            if (!contacts && touched) {
                touched = 0;
                hits++;
                worst = fmax(worst, fabs(energy_of(c) / before - 1));
                if (fabs((double)c->pos[0]) > 6 || fabs((double)c->pos[1]) > 6) break;
            }
        }
        walls_case_free(c);
    }
    CHECK(hits > throws && most == 1);
    CHECK_BELOW(worst, 1e-2);
}

/* ---- the list of those at the mesh ---- */

enum { CROWD = 24 };
typedef struct walls_crowd {
    dem_real x[5][4 * CROWD];   /* pos, vel, spin, turn, momentum */
    dem_real sums[DEM_SUMS * CROWD];
    int32_t row_of[CROWD], place[CROWD]; /* place: of tablet k in the arrays */
    dem_wall_row row[2][CROWD];
    dem_wall_kept kept[2][DEM_SLOTS * CROWD];
    dem_wall_state state;
    dem_bodies bodies;
    dem_walls walls;
} walls_crowd;

/* With the walls of `one`; nothing is set in row_of. */
static walls_crowd *crowd_new(const walls_case *one)
{
    walls_crowd *c = (walls_crowd *)calloc(1, sizeof *c);
    int k;
    CHECK(c != NULL);
    c->bodies = one->bodies;
    c->bodies.base.n = CROWD;
    c->bodies.base.pos = c->x[0];
    c->bodies.base.vel = c->x[1];
    c->bodies.base.spin = c->x[2];
    c->bodies.turn = c->x[3];
    c->bodies.momentum = c->x[4];
    c->walls = one->walls;
    for (k = 0; k < CROWD; k++) c->row_of[k] = 77 - k;
    c->walls.row_of = c->row_of;
    c->walls.row_room = CROWD;
    c->walls.kept_room = DEM_SLOTS * CROWD;
    for (k = 0; k < 2; k++) {
        c->walls.row[k] = c->row[k];
        c->walls.kept[k] = c->kept[k];
    }
    c->walls.state = &c->state;
    return c;
}

static void copy_alone(walls_crowd *c, int k, const walls_case *one)
{
    const dem_real *const from[5] = {one->pos, one->vel, one->spin, one->turn, one->momentum};
    int a;
    for (a = 0; a < 5; a++) memcpy(c->x[a] + 4 * k, from[a], 4 * sizeof(dem_real));
    c->place[k] = k;
}

/* Two tablets change places. */
static void swap_in_crowd(walls_crowd *c, int32_t i, int32_t j)
{
    int32_t new_of[CROWD], k;
    int a;
    for (k = 0; k < CROWD; k++) {
        new_of[k] = k == i ? j : k == j ? i : k;
        if (c->place[k] == i || c->place[k] == j) c->place[k] = i + j - c->place[k];
    }
    for (a = 0; a < 5; a++) {
        dem_real was[4], *one = c->x[a] + 4 * i, *other = c->x[a] + 4 * j;
        memcpy(was, one, sizeof was);
        memmove(one, other, sizeof was);
        memcpy(other, was, sizeof was);
    }
    for (k = 0; k < dem_wall_rows(&c->walls, c->state.now); k++)
        dem_wall_remap(&c->walls, k, new_of);
}

/* Tablets that hop at different times, and change places in memory: each moves, to the last bit, as
   it does alone; and only those near the plane are listed. */
static void test_walls_list(void **state)
{
    walls_case *alone[CROWD];
    walls_crowd *c;
    uint64_t seed = random_seed(3);
    int k, step, a, least = CROWD, most = 0, steps = SANITIZED ? 400 : 1500;
    (void)state;
    for (k = 0; k < CROWD; k++) {
        double const pos[3] = {0.3 * random_double(&seed), 0, 1.2 + 2 * random_double(&seed)},
                     vel[3] = {0.5, random_double(&seed), -1}, turn[4] = {0.8, 0.36, 0.48, 0};
        alone[k] = walls_case_new(0.9, 0.5);
        make_plane(alone[k], 1);
        start_at(alone[k], pos, vel, turn);
    }
    c = crowd_new(alone[0]);
    for (k = 0; k < CROWD; k++) copy_alone(c, k, alone[k]);
    for (step = 0; step < steps; step++) {
        int32_t rows;
        if (step % 3 == 0) swap_in_crowd(c, random_below(&seed, CROWD), random_below(&seed, CROWD));
        memset(c->sums, 0, sizeof c->sums);
        rows = dem_walls_find(&c->bodies, &c->walls);
        dem_walls_push(&c->bodies, &c->walls, c->sums);
        for (k = 0; k < CROWD; k++) dem_body_move(&c->bodies, k, c->sums + DEM_SUMS * k);
        for (k = 0; k < CROWD; k++) step_walls(alone[k]);
        if (rows < least) least = rows;
        if (rows > most) most = rows;
    }
    CHECK(!c->state.lost && least < CROWD / 2 && most > 3 && most < CROWD);
    for (k = 0; k < CROWD; k++) {
        const dem_real *const from[5] = {alone[k]->pos, alone[k]->vel, alone[k]->spin,
                                         alone[k]->turn, alone[k]->momentum};
        for (a = 0; a < 5; a++)
            CHECK(!memcmp(c->x[a] + 4 * c->place[k], from[a], 3 * sizeof(dem_real)));
        walls_case_free(alone[k]);
    }
    free(c);
}

/* Without room it is told, and nothing is written where there is none. */
static void test_walls_room(void **state)
{
    walls_case *one = walls_case_new(1, 0);
    walls_crowd *c;
    double const pos[3] = {0, 0, 0.49}, none[3] = {0, 0, 0}, flat[4] = {1, 0, 0, 0};
    int k;
    (void)state;
    make_plane(one, 1);
    start_at(one, pos, none, flat);
    c = crowd_new(one);
    for (k = 0; k < CROWD; k++) copy_alone(c, k, one);
    c->walls.row_room = CROWD / 2;
    c->row[1][CROWD / 2].body = -7;
    CHECK(dem_walls_find(&c->bodies, &c->walls) == CROWD && c->row[1][CROWD / 2].body == -7);
    c->walls.row_room = CROWD;
    CHECK(dem_walls_refind(&c->bodies, &c->walls) == CROWD && c->row[1][CROWD / 2].body >= 0);
    c->walls.kept_room = CROWD - 5;
    c->kept[1][CROWD - 5].triangle = -7;
    dem_walls_push(&c->bodies, &c->walls, c->sums);
    CHECK(c->state.lost == 5 && c->kept[1][CROWD - 5].triangle == -7);
    CHECK(c->state.kept[c->state.now] == CROWD);
    walls_case_free(one);
    free(c);
}

/* A tablet that was not at the mesh has nothing from the row at which row_of happens to point. */
static void test_walls_stale(void **state)
{
    walls_case *one = walls_case_new(1, 0.5);
    walls_crowd *c;
    double const pos[3] = {0, 0, 0.49}, vel[3] = {0.5, 0, 0}, flat[4] = {1, 0, 0, 0};
    dem_real first[DEM_SUMS];
    int k;
    (void)state;
    make_plane(one, 1);
    start_at(one, pos, vel, flat);
    c = crowd_new(one);
    for (k = 0; k < CROWD; k++) {
        copy_alone(c, k, one);
        c->row_of[k] = 0;
        if (k > 0) c->x[0][4 * k + 2] = 5;
    }
    CHECK(dem_walls_find(&c->bodies, &c->walls) == 1);
    dem_walls_push(&c->bodies, &c->walls, c->sums);
    memcpy(first, c->sums, sizeof first);
    c->x[0][4 + 2] = c->x[0][2];
    memset(c->sums, 0, sizeof c->sums);
    CHECK(dem_walls_find(&c->bodies, &c->walls) == 2);
    dem_walls_push(&c->bodies, &c->walls, c->sums);
    CHECK(!memcmp(c->sums + DEM_SUMS, first, sizeof first));
    CHECK(memcmp(c->sums, first, sizeof first) != 0);
    walls_case_free(one);
    free(c);
}
