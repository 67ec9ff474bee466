/* scene_tablets.h - tablets in a drum that turns, by ../common/dem_shapes.h, with nlist.h, for
   nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_TABLETS_H
#define SCENE_TABLETS_H

/* -------------------------------------------------------------------------------------------------
   >>tablets: a step of the page is five of these. Units: a tablet's radius, its density, its
   weight. The page looks along the axis of the drum, y. Setting: the speed of the drum, 5 .. 65 %
   of that at which tablets stay at the wall. Points: x, y, and the axis of the tablet, as far as
   it lies in the page. Boxes: the sides of the drum, from where to where.
   ---------------------------------------------------------------------------------------------- */

enum { TABLETS_SIDES = 8, TABLETS_STEPS = 5 };
#define TABLETS_DRUM 14.0           /* from the axis to the middle of a side */

static struct tablets {
    dem_bodies bodies;
    shape shape;
    float *sums;                    /* [6 n] force and torque */
    int32_t deep;
    ugrid grid;
    nlist list;
    double length, omega, angle;
} tablets;

static void tablets_end(void)
{
    ugrid_free(&tablets.grid);
    nlist_free(&tablets.list);
    free(tablets.bodies.base.pos); /* and all that follows it: tablets_memory */
    memset(&tablets, 0, sizeof tablets);
}

/* Zeros, in one piece. */
static int tablets_memory(void)
{
    size_t const n = (size_t)page.n, planes = TABLETS_SIDES + 2;
    dem_bodies *b = &tablets.bodies;
    float *at = (float *)calloc(n * (5 * 4 + DEM_SUMS + 4 * planes), sizeof *at);
    b->base.pos = at;
    if (!at) return 0;
    b->base.vel = at + 4 * n;
    b->base.spin = at + 8 * n;
    b->turn = at + 12 * n;
    b->momentum = at + 16 * n;
    tablets.sums = at + 20 * n;
    b->base.plane_history = at + (20 + DEM_SUMS) * n;
    return 1;
}

/* The drum has turned by tablets.angle: sides, then both ends. */
static void tablets_turn_drum(void)
{
    dem_system *d = &tablets.bodies.base;
    double const corner = TABLETS_DRUM / cos(3.14159265 / TABLETS_SIDES);
    double const scale = 0.46 * fmin((double)page.wide, (double)page.high) / corner;
    int k, end;
    d->planes = TABLETS_SIDES + 2;
    page.boxes = TABLETS_SIDES;
    for (k = 0; k < TABLETS_SIDES; k++) {
        double const at = tablets.angle + 2 * 3.14159265 * k / TABLETS_SIDES;
        d->plane[k].normal[0] = (float)-sin(at);
        d->plane[k].normal[2] = (float)-cos(at);
        d->plane[k].offset = (float)-TABLETS_DRUM;
        for (end = 0; end < 2; end++) {
            double const to = at + (end - 0.5) * 2 * 3.14159265 / TABLETS_SIDES;
            page.box[4 * k + 2 * end] = (float)((double)page.wide / 2 + scale * corner * sin(to));
            page.box[4 * k + 2 * end + 1] =
                (float)((double)page.high / 2 + scale * corner * cos(to));
        }
    }
    for (k = 0; k < 2; k++) {
        d->plane[TABLETS_SIDES + k].normal[1] = k ? -1.0f : 1.0f;
        d->plane[TABLETS_SIDES + k].offset = (float)(-tablets.length / 2);
    }
    for (k = 0; k < d->planes; k++) d->plane[k].motion.omega[1] = (float)tablets.omega;
    page.size = (float)scale;
}

/* On a lattice in the drum, from below, turned as chance will have it; 1: all found room. */
static int tablets_place(void)
{
    float const mass = tablets.shape.volume, gap = 2.02f * tablets.shape.bound;
    int const wide = (int)(2 * TABLETS_DRUM / (double)gap),
              deep = (int)(tablets.length / (double)gap);
    int x, y, z, i = 0, k;
    for (z = 0; z < wide; z++)
        for (x = 0; x < wide; x++)
            for (y = 0; y < deep && i < page.n; y++) {
                float const at[3] = {gap * ((float)x - 0.5f * (float)(wide - 1)),
                                     gap * ((float)y - 0.5f * (float)(deep - 1)),
                                     gap * ((float)z - 0.5f * (float)(wide - 1))};
                float *p = tablets.bodies.base.pos + 4 * i, *q = tablets.bodies.turn + 4 * i;
                float length = 0;
                if (hypot((double)at[0], (double)at[2]) + (double)gap / 2 > TABLETS_DRUM) continue;
                memcpy(p, at, sizeof at);
                p[3] = tablets.shape.bound;
                tablets.bodies.base.vel[4 * i + 3] = 1 / mass;
                for (k = 0; k < 4; k++) q[k] = web_random() - 0.5f;
                for (k = 0; k < 4; k++) length += q[k] * q[k];
                for (k = 0; k < 4; k++) q[k] = length > 0 ? q[k] / sqrtf(length) : k == 0;
                i++;
            }
    return i == page.n;
}

/* So stiff that a fall through the drum presses two into each other by less than their edges are
   round; a contact is 30 steps. */
static const char *tablets_begin(void)
{
    dem_system *d = &tablets.bodies.base;
    double const rounding = 0.2, most = 0.6 * rounding;
    double mass;
    if (!tablets_memory()) return no_memory;
    tablets.shape = shape_tablet(1, 0.5, 0.25, rounding);
    mass = (double)tablets.shape.volume;
    tablets.bodies.shapes = &tablets.shape;
    tablets.bodies.deep = &tablets.deep;
    tablets.length = 2.02 * (double)tablets.shape.bound * (1.2 + ceil(page.n / 70.0));
    tablets.omega = (0.05 + 0.6 * (double)page.setting) / sqrt(TABLETS_DRUM);
    d->n = page.n;
    d->gravity[2] = -1;
    d->between = d->walls =
        dem_material_of(0.5 * mass * 4 * TABLETS_DRUM / (most * most), 0.6, 0.35, 0.6);
    d->dt = (float)(dem_contact_time(&d->between, mass / 2) / 30);
    tablets_turn_drum();
    if (tablets_place()) return NULL;
    tablets_end();
    return "the tablets found no room";
}

static const char *tablets_collect(void)
{
    dem_system *d = &tablets.bodies.base;
    float const reach = 2 * tablets.shape.bound;
    nlist_result result;
    ugrid_result built;
    ugrid_desc cells;
    nlist_desc desc;
    int32_t moved = 1;
    if (tablets.list.built && nlist_moved(&tablets.list, d->pos, DEM_STRIDE, &moved) != NLIST_OK)
        return "a tablet is lost";
    if (!moved) return NULL;
    memset(&cells, 0, sizeof cells);
    memset(&desc, 0, sizeof desc);
    cells.min[0] = cells.min[2] = -1.1f * (float)TABLETS_DRUM;
    cells.max[0] = cells.max[2] = 1.1f * (float)TABLETS_DRUM;
    cells.min[1] = (float)-tablets.length;
    cells.max[1] = (float)tablets.length;
    desc.radius = reach;
    desc.skin = 0.2f;
    cells.cell = reach + desc.skin;
    desc.layout = NLIST_DYNAMIC;
    desc.half = desc.grow = 1;
    desc.history = DEM_BODY_HISTORY;
    built = ugrid_build(&tablets.grid, &cells, d->pos, DEM_STRIDE, d->n);
    if (built != UGRID_OK) return ugrid_result_text(built);
    result = nlist_build_ugrid(&tablets.list, &desc, &tablets.grid, d->pos, DEM_STRIDE, d->n);
    return result == NLIST_OK ? NULL : nlist_result_text(result);
}

/* The mouse pushes tablets away, in the plane of the page. */
static void tablets_push(int32_t i)
{
    const float *p = tablets.bodies.base.pos + 4 * (size_t)i;
    float *v = tablets.bodies.base.vel + 4 * (size_t)i;
    float const away[2] = {p[0] - (page.mouse.x - page.wide / 2) / page.size,
                           p[2] - (page.mouse.y - page.high / 2) / page.size};
    float const distance = sqrtf(away[0] * away[0] + away[1] * away[1]), reach = 3.5f;
    float const push = 6 * tablets.bodies.base.dt * (1 - distance / reach);
    if (!page.mouse.down || distance >= reach || distance <= 0) return;
    v[0] += push * away[0] / distance;
    v[2] += push * away[1] / distance;
}

static const char *tablets_step(void)
{
    nlist_sums how;
    nlist_result result;
    const char *wrong;
    int32_t i;
    tablets.angle += tablets.omega * (double)tablets.bodies.base.dt;
    tablets_turn_drum();
    wrong = tablets_collect();
    if (wrong) return wrong;
    memset(&how, 0, sizeof how);
    how.values = DEM_SUMS;
    memset(tablets.sums, 0, (size_t)page.n * DEM_SUMS * sizeof(float));
    result = nlist_sum(&tablets.list, &how, dem_bodies_fn, &tablets.bodies, tablets.sums);
    if (result != NLIST_OK) return nlist_result_text(result);
    for (i = 0; i < page.n; i++) {
        dem_body_planes(&tablets.bodies, i, tablets.sums + DEM_SUMS * i);
        tablets_push(i);
        dem_body_move(&tablets.bodies, i, tablets.sums + DEM_SUMS * i);
    }
    return tablets.deep ? "two tablets overlap by more than their rounded edges" : NULL;
}

/* The axis of a tablet is the z axis of its own frame. */
static const char *tablets_go(void)
{
    const char *wrong = NULL;
    int32_t i;
    for (i = 0; i < TABLETS_STEPS && !wrong; i++) wrong = tablets_step();
    for (i = 0; i < page.n; i++) {
        const float *p = tablets.bodies.base.pos + 4 * i, *q = tablets.bodies.turn + 4 * i;
        web_put(i, page.wide / 2 + page.size * p[0], page.high / 2 + page.size * p[2],
                2 * (q[1] * q[3] + q[0] * q[2]), 1 - 2 * (q[1] * q[1] + q[2] * q[2]));
    }
    page.figure = 2.0 * (double)tablets.list.total / page.n;
    return wrong;
}

#endif /* SCENE_TABLETS_H */
