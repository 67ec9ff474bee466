/* tablets_mesh.h - the drum of tablets.c as triangles: its eight sides and both ends, in pieces;
   and lifters, which planes cannot be. A part of tablets.h.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef TABLETS_MESH_H
#define TABLETS_MESH_H

/* The outline of the drum across its axis: so many points per side, {x, z}. */
enum { OUTLINE = 5 };

/* Point k of a side. It begins in a corner; then foot, top, top and foot of its lifter, where there
   is one: a bar in the middle of the side, a little narrower at the top, so that every point of the
   surface is seen from the axis. */
static void outline_point(const scene *s, int side, int k, double p[2])
{
    double const height = s->options->lifters, wide = 0.15 * s->drum,
                 at = 2 * PI * side / SIDES, half = tan(PI / SIDES) * s->drum;
    int const top = k == 2 || k == 3;
    double const along = k == 0 ? -half : (k < 3 ? -1 : 1) * (top ? 0.3 : 0.5) * wide,
                 out = s->drum - (top ? height : 0);
    p[0] = out * sin(at) + along * cos(at);
    p[1] = out * cos(at) - along * sin(at);
}

static void put_corner(dem_real *corner, double x, double y, double z)
{
    corner[0] = (dem_real)x;
    corner[1] = (dem_real)y;
    corner[2] = (dem_real)z;
}

/* Piece `row` of so many along the axis, over the line from a to b of the outline: two triangles,
   seen from the axis. */
static void put_piece(scene *s, const double a[2], const double b[2], int row, int rows)
{
    dem_real *to = s->corners + 9 * (size_t)s->walls.mesh.triangles;
    double const low = s->length * ((double)row / rows - 0.5),
                 high = s->length * ((row + 1.0) / rows - 0.5);
    put_corner(to, a[0], low, a[1]);
    put_corner(to + 3, b[0], high, b[1]);
    put_corner(to + 6, b[0], low, b[1]);
    put_corner(to + 9, a[0], low, a[1]);
    put_corner(to + 12, a[0], high, a[1]);
    put_corner(to + 15, b[0], high, b[1]);
    s->walls.mesh.triangles += 2;
}

/* From the axis to that line, at both ends. */
static void put_ends(scene *s, const double a[2], const double b[2])
{
    int end;
    for (end = 0; end < 2; end++) {
        dem_real *to = s->corners + 9 * (size_t)s->walls.mesh.triangles++;
        double const y = (end - 0.5) * s->length;
        put_corner(to, 0, y, 0);
        put_corner(to + 3, end ? b[0] : a[0], y, end ? b[1] : a[1]);
        put_corner(to + 6, end ? a[0] : b[0], y, end ? a[1] : b[1]);
    }
}

/* A line of the outline, in so many pieces each way. */
static void put_line(scene *s, const double a[2], const double b[2], int pieces)
{
    double from[2] = {a[0], a[1]}, to[2];
    int k, row, x;
    for (k = 1; k <= pieces; k++) {
        for (x = 0; x < 2; x++) to[x] = a[x] + (b[x] - a[x]) * k / pieces;
        for (row = 0; row < pieces; row++) put_piece(s, from, to, row, pieces);
        put_ends(s, from, to);
        memcpy(from, to, sizeof from);
    }
}

/* A quaternion about the axis. */
static void turn_walls(scene *s, double angle)
{
    s->walls.turn[0] = (dem_real)cos(angle / 2);
    s->walls.turn[2] = (dem_real)sin(angle / 2);
    s->walls.motion.omega[1] = (dem_real)s->omega;
}

/* Room for so many bodies at the mesh, and all their contacts. What is there is kept. */
static void grow_walls(dem_walls *w, int32_t rows)
{
    int k;
    w->row_room = rows;
    w->kept_room = DEM_SLOTS * rows;
    for (k = 0; k < 2; k++) {
        w->row[k] = (dem_wall_row *)grown(w->row[k], (size_t)rows, sizeof *w->row[k]);
        w->kept[k] =
            (dem_wall_kept *)grown(w->kept[k], (size_t)w->kept_room, sizeof *w->kept[k]);
    }
}

static void make_walls(scene *s)
{
    int const pieces = s->options->mesh, points = s->options->lifters > 0 ? OUTLINE : 1;
    size_t const most = (size_t)(SIDES * points * pieces) * (2 * (size_t)pieces + 2);
    lbvh_desc desc;
    int side, k;
    s->corners = (dem_real *)zeros(9 * most, sizeof(dem_real));
    for (side = 0; side < SIDES; side++)
        for (k = 0; k < points; k++) {
            double a[2], b[2];
            outline_point(s, side, k, a);
            outline_point(s, side + (k + 1 == points), (k + 1) % points, b);
            put_line(s, a, b, pieces);
        }
    s->walls.mesh.vertices = s->corners;
    memset(&desc, 0, sizeof desc);
    desc.kind = LBVH_TRIANGLES;
    MUST(lbvh, lbvh_build(&s->walls.tree, &desc, s->corners, 0, s->walls.mesh.triangles),
         "the tree over the drum");
    s->walls.row_of = (int32_t *)zeros((size_t)s->bodies.base.n, sizeof(int32_t));
    s->walls.state = &s->touched;
    grow_walls(&s->walls, s->bodies.base.n / 8 + 64);
    turn_walls(s, 0);
}

/* Triangles push those tablets that are near one. */
static void push_mesh(scene *s)
{
    int32_t const rows = dem_walls_find(&s->bodies, &s->walls);
    if (rows > s->walls.row_room) {
        grow_walls(&s->walls, rows + rows / 2);
        dem_walls_refind(&s->bodies, &s->walls);
    }
    dem_walls_push(&s->bodies, &s->walls, s->sums);
}

static void free_walls(scene *s)
{
    int k;
    lbvh_free(&s->walls.tree);
    free(s->walls.row_of);
    for (k = 0; k < 2; k++) {
        free(s->walls.row[k]);
        free(s->walls.kept[k]);
    }
    free(s->corners);
}

/* Ends the run where a contact could not be computed. */
static void check_contacts(const scene *s)
{
    double const now = (double)s->step * (double)s->bodies.base.dt;
    if (s->deep)
        stop(1, "until %.5f s: two bodies, or one and a wall, overlap by more than the rounded "
                "edges: a larger --steps", now);
    if (s->touched.lost)
        stop(1, "until %.5f s: a tablet touches more than %d triangles at once, or there was no "
                "room for %ld at the walls", now, DEM_SLOTS, (long)s->touched.rows[s->touched.now]);
}

#endif /* TABLETS_MESH_H */
