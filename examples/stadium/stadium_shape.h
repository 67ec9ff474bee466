/* stadium_shape.h - particles on a teapot, and on the stands of the stadium around it.
   SPDX-License-Identifier: MIT OR Unlicense

   The teapot is about 3.4 long, 2 wide and 1.7 high: a body of revolution, a lid with a knob, a
   spout and a handle, which are tubes. It stands on the ground, z = 0. The stadium is an ellipse
   whose longer axis is `ratio` times the length of the teapot. */

#ifndef STADIUM_SHAPE_H
#define STADIUM_SHAPE_H

typedef struct stadium {
    int32_t n;                  /* particles of the teapot, and a tenth as many on the stands */
    double ratio, radius;       /* of the domain to the teapot; of the search */
    double most_tests;
    double min[3], max[3];      /* the box of all */
    float *pos;                 /* [3 n] */
} stadium;

/* A point on a tube of this radius around the point c, where the tube's direction in the plane of x
   and z is (dx, dz). */
static void tube_point(const double c[2], double dx, double dz, double radius, double turn,
                       double p[3])
{
    double const length = hypot(dx, dz), side = radius * cos(turn) / length;
    p[0] = c[0] - dz * side;
    p[1] = radius * sin(turn);
    p[2] = c[1] + dx * side;
}

/* A point on the teapot: `part` chooses what it belongs to, u and v where it lies, all 0 to 1. */
static void teapot_point(double part, double u, double v, double p[3])
{
    double const turn = 2 * PI * v;
    if (part < 0.56) {                                   /* the body */
        double const z = 1.25 * u, r = sqrt(fmax(0, 1 - pow((z - 0.5) / 0.95, 2)));
        p[0] = r * cos(turn);
        p[1] = r * sin(turn);
        p[2] = z;
    } else if (part < 0.70) {                            /* the lid */
        double const r = 0.62 * sqrt(u);
        p[0] = r * cos(turn);
        p[1] = r * sin(turn);
        p[2] = 1.25 + 0.22 * sqrt(fmax(0, 1 - pow(r / 0.62, 2)));
    } else if (part < 0.73) {                            /* its knob */
        double const z = 2 * u - 1, r = 0.12 * sqrt(1 - z * z);
        p[0] = r * cos(turn);
        p[1] = r * sin(turn);
        p[2] = 1.57 + 0.12 * z;
    } else if (part < 0.87) {                            /* the spout: a curve of Bezier */
        double const a[2] = {0.85, 0.45}, b[2] = {1.5, 0.45}, c[2] = {1.75, 1.2};
        double const w = 1 - u,
                     at[2] = {w * w * a[0] + 2 * w * u * b[0] + u * u * c[0],
                              w * w * a[1] + 2 * w * u * b[1] + u * u * c[1]};
        tube_point(at, 2 * w * (b[0] - a[0]) + 2 * u * (c[0] - b[0]),
                   2 * w * (b[1] - a[1]) + 2 * u * (c[1] - b[1]), 0.26 - 0.15 * u, turn, p);
    } else {                                             /* the handle: an arc */
        double const angle = PI * (0.40 + 1.12 * u),
                     at[2] = {-0.95 + 0.7 * cos(angle), 0.72 + 0.42 * sin(angle)};
        tube_point(at, -0.7 * sin(angle), 0.42 * cos(angle), 0.1, turn, p);
    }
}

/* A point of the stands, which rise from 0.7 of the ellipse to its edge. */
static void stand_point(double ratio, double u, double v, double p[3])
{
    double const far = 0.7 + 0.3 * u, turn = 2 * PI * v, edge = 1.7 * ratio;
    p[0] = edge * far * cos(turn);
    p[1] = 0.7 * edge * far * sin(turn);
    p[2] = 0.25 * edge * u;
}

static double stadium_volume(const stadium *s)
{
    return (s->max[0] - s->min[0]) * (s->max[1] - s->min[1]) * (s->max[2] - s->min[2]);
}

static stadium stadium_new(int32_t teapot, double ratio, int32_t seed)
{
    uint64_t r = random_seed(seed);
    stadium s;
    int32_t i;
    int a;
    memset(&s, 0, sizeof s);
    s.n = teapot + teapot / 10;
    s.ratio = ratio;
    s.radius = 9 / sqrt(teapot); /* about 16 neighbours */
    s.pos = (float *)zeros(3 * (size_t)s.n, sizeof(float));
    for (a = 0; a < 3; a++) {
        s.min[a] = 1e30;
        s.max[a] = -1e30;
    }
    for (i = 0; i < s.n; i++) {
        double const part = random_double(&r), u = random_double(&r), v = random_double(&r);
        double p[3];
        if (i < teapot) teapot_point(part, u, v, p);
        else stand_point(ratio, u, v, p);
        for (a = 0; a < 3; a++) {
            s.pos[3 * (size_t)i + (size_t)a] = (float)p[a];
            s.min[a] = fmin(s.min[a], p[a]);
            s.max[a] = fmax(s.max[a], p[a]);
        }
    }
    return s;
}

static void stadium_free(stadium *s) { free(s->pos); }

#endif /* STADIUM_SHAPE_H */
