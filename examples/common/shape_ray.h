/* shape_ray.h - where a ray enters a sphere or a tablet of shapes.h: one text for C and CUDA.
   SPDX-License-Identifier: MIT OR Unlicense

   A tablet is a cylinder without what is above its upper edge and outside of the ball of the upper
   cap, and the same below. What shapes.h rounds for contacts, its edges, and what it curves, the
   band, a ray sees sharp and straight.

   Include lbvh.h and nlist.h first. */

#ifndef SHAPE_RAY_H
#define SHAPE_RAY_H

#include "shapes.h"

/* The part of a ray that is inside: t from .. to in lengths of the direction. n: the normal where
   it enters. Set from and to to the part of the ray that counts, before the first call; n stays as
   it is where the ray begins inside. */
typedef struct shape_span { dem_real from, to, n[3]; } shape_span;

/* The two balls have the radius `big`, about -k and k; the cylinder has the radius `across`, and
   meets them at the heights -edge and edge. */
typedef struct shape_solid { dem_real across, big, k, edge; } shape_solid;

DEM_FN shape_solid shape_solid_of(const shape *s)
{
    shape_solid solid;
    dem_real high2;
    solid.across = solid.big = s->rounding;
    solid.k = solid.edge = 0;
    if (s->kind == SHAPE_TABLET) {
        solid.across += s->size[4] + s->size[5];
        solid.big += s->size[2];
        solid.k = s->size[3];
        high2 = solid.big * solid.big - solid.across * solid.across;
        solid.edge = (high2 > 0 ? dem_root(high2) : 0) - solid.k; /* half a ball: rounding */
    }
    return solid;
}

/* No point of the solid is further from its middle. (Its sharp edge is outside of shape.bound.) */
DEM_FN dem_real shape_ray_bound(const shape *s)
{
    dem_real const bulge = s->kind == SHAPE_TABLET ? s->size[4] + s->size[5] - s->size[0] : 0;
    return s->bound + (s->kind == SHAPE_TABLET ? s->rounding + bulge : 0);
}

/* How far the solid reaches along an axis of the room, from its middle; tilt: the part of its own
   axis along that one. The furthest point is on a cap, where the cap has a normal that way, else on
   the edge. */
DEM_FN dem_real shape_solid_reach(const shape_solid *s, dem_real tilt)
{
    dem_real const up = tilt < 0 ? -tilt : tilt, level2 = 1 - up * up,
                   level = level2 > 0 ? dem_root(level2) : 0;
    if (level * s->big <= s->across) return s->big - s->k * up;
    return s->across * level + s->edge * up;
}

/* Cuts the span to a ball (flat = 1) or a cylinder along z (flat = 0) about (0, 0, middle); 0:
   nothing is left. Measured from the point of the ray that is nearest, where rounding is least. */
DEM_FN int shape_clip(shape_span *span, const dem_real o[3], const dem_real d[3], dem_real middle,
                      dem_real radius, dem_real flat)
{
    dem_real const along[3] = {d[0], d[1], flat * d[2]};
    dem_real r[3] = {o[0], o[1], flat * (o[2] - middle)}, a = dem_dot(along, along), nearest, half;
    int k;
    if (!(a > 0)) return dem_dot(r, r) < radius * radius;
    nearest = -dem_dot(r, along) / a;
    dem_add(r, nearest, along);
    half = radius * radius - dem_dot(r, r);
    if (!(half > 0)) return 0;
    half = dem_root(half / a);
    if (nearest + half < span->to) span->to = nearest + half;
    if (nearest - half > span->from) {
        span->from = nearest - half;
        for (k = 0; k < 3; k++) span->n[k] = (r[k] - half * along[k]) / radius;
    }
    return span->from < span->to;
}

/* Cuts a span within the cylinder to what is below the upper edge or in the ball of the upper cap:
   two parts that meet. side -1: the same of the lower cap. */
DEM_FN int shape_clip_cap(shape_span *span, const dem_real o[3], const dem_real d[3],
                          const shape_solid *s, dem_real side)
{
    shape_span ball = *span, below = *span;
    int const in_ball = shape_clip(&ball, o, d, -side * s->k, s->big, 1);
    dem_real const away = side * d[2], left = s->edge - side * o[2];
    if (away > 0 && left / away < below.to) below.to = left / away;
    if (away < 0 && left / away > below.from) below.from = left / away;
    if (!(below.from < below.to) || (!(away > 0 || away < 0) && left < 0)) {
        *span = ball;
        return in_ball;
    }
    if (in_ball && ball.to > below.to) below.to = ball.to;
    *span = in_ball && ball.from < below.from ? ball : below;
    span->to = below.to;
    return 1;
}

/* Is a part of the ray inside of the body, a sphere or a tablet? o: measured from its middle. Then
   the span is that part. Any other shape is its surrounding sphere. */
DEM_FN int shape_ray(const shape_placed *s, const dem_real o[3], const dem_real d[3],
                     shape_span *span)
{
    shape_solid const solid = shape_solid_of(s->body);
    dem_real p[3], v[3], n[3] = {0, 0, 0};
    int a;
    if (s->body->kind != SHAPE_TABLET) return shape_clip(span, o, d, 0, s->body->bound, 1);
    for (a = 0; a < 3; a++) {
        p[a] = dem_dot(s->axes[a], o);
        v[a] = dem_dot(s->axes[a], d);
        span->n[a] = 0;
    }
    if (!shape_clip(span, p, v, 0, solid.across, 0) ||
        !shape_clip_cap(span, p, v, &solid, 1) || !shape_clip_cap(span, p, v, &solid, -1))
        return 0;
    for (a = 0; a < 3; a++) dem_add(n, span->n[a], s->axes[a]);
    for (a = 0; a < 3; a++) span->n[a] = n[a];
    return 1;
}

#endif /* SHAPE_RAY_H */
