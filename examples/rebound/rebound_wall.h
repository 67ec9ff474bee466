/* rebound_wall.h - the wall of rebound.c, twice: as a plane and as a mesh; and the sphere.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef REBOUND_WALL_H
#define REBOUND_WALL_H

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

#endif /* REBOUND_WALL_H */
