/* particle_mesh.h - forces by a mesh (PM), for 1 / d^2 in the plane: a contrast to nbody.h.
   SPDX-License-Identifier: MIT OR Unlicense

   R. W. Hockney and J. W. Eastwood, Computer Simulation Using Particles (1988), chapter 5:

       assign        the mass of a body goes to the 3 x 3 nodes around it (quadratic weights, TSC)
       convolve      potential at every node = sum over all nodes of mass * kernel(distance), by
                     a fast Fourier transform
       differences   force at a node = difference of potentials to its left and right
       interpolate   back to the bodies, with the weights of `assign`

       . . . .       The kernel is 1 / d: gravity of space between bodies that stay in a plane. The
       . o o o       mesh is doubled in each direction, and the rest of it is empty: so what the
       . o x o       transform repeats periodically does not act. Nearer than some spacings of the
       . o o o       mesh, forces are wrong, and softer than they should be.

   Cost: n, and M log M for M nodes. Source 002, 3.1.2, sums without a transform: n M. */

#ifndef EXAMPLES_PARTICLE_MESH_H
#define EXAMPLES_PARTICLE_MESH_H

#include "../common/base.h"

typedef struct mesh {
    int32_t side, wide;     /* nodes along an edge; with the empty part: a power of two */
    double h;               /* between nodes */
    double *field;          /* [2 wide^2] complex numbers: masses, then potentials */
    double *kernel;         /* [wide^2] transform of the kernel: real, since it is even */
    double *turn;           /* [wide] cosines and sines */
} mesh;

/* -------------------------------------------------------------------------------------------------
   >>transform (J. W. Cooley and J. W. Tukey, 1965)
   ---------------------------------------------------------------------------------------------- */

/* In place, `wide` complex numbers, `step` apart; way: 1 forward, -1 back (without 1 / wide). */
static void fft(const mesh *g, double *z, size_t step, int way)
{
    size_t const n = (size_t)g->wide, s = 2 * step;
    size_t i, j = 0, half, bit, k;
    for (i = 1; i < n; i++) { /* element i goes where its bits, backwards, say */
        for (bit = n / 2; j & bit; bit /= 2) j ^= bit;
        j ^= bit;
        for (k = 0; i < j && k < 2; k++) {
            double const swap = z[s * i + k];
            z[s * i + k] = z[s * j + k];
            z[s * j + k] = swap;
        }
    }
    for (half = 1; half < n; half *= 2)
        for (k = 0; k < half; k++) {
            size_t const at = k * (n / 2 / half);
            double const c = g->turn[2 * at], w = way * g->turn[2 * at + 1];
            for (i = k; i < n; i += 2 * half) {
                double *a = z + s * i, *b = z + s * (i + half);
                double const x = c * b[0] + w * b[1], y = c * b[1] - w * b[0];
                b[0] = a[0] - x;
                b[1] = a[1] - y;
                a[0] += x;
                a[1] += y;
            }
        }
}

/* Rows, then columns. The rows that hold nothing yet, or are not needed any more, are left out. */
static void fft_2d(const mesh *g, double *z, int32_t rows, int way)
{
    int32_t k;
    if (way > 0) for (k = 0; k < rows; k++) fft(g, z + 2 * (size_t)k * (size_t)g->wide, 1, way);
    for (k = 0; k < g->wide; k++) fft(g, z + 2 * (size_t)k, (size_t)g->wide, way);
    if (way < 0) for (k = 0; k < rows; k++) fft(g, z + 2 * (size_t)k * (size_t)g->wide, 1, way);
}

/* -------------------------------------------------------------------------------------------------
   >>mesh
   ---------------------------------------------------------------------------------------------- */

/* alpha 0: 1 / d, at a node its mean over the square around it, 4 ln(1 + sqrt 2) / h. Else the part
   of it that is smooth, erf(alpha d) / d: p3m.h. */
static double mesh_kernel(double alpha, double d, double h)
{
    if (alpha > 0) return d > 0 ? erf(alpha * d) / d : 2 * alpha / sqrt(PI);
    return d > 0 ? 1 / d : 4 * log(1 + sqrt(2.0)) / h;
}

/* What assigning and interpolating do to a wave, k = -wide/2 .. wide/2 of it over the whole mesh:
   both are averages, by the weights of TSC, and multiply it by a sinc to the third power. */
static double mesh_blur(const mesh *g, size_t k)
{
    double const wave = k < (size_t)g->side ? (double)k : (double)k - g->wide;
    double const half = PI * wave / g->wide, sinc = k ? sin(half) / half : 1;
    return pow(sinc, 6);
}

/* Over the unit square, with three nodes beyond each border. side: a power of two. The blur is
   taken back where the kernel is smooth (Hockney and Eastwood, section 8-3: the influence
   function, here in its simplest form); of 1 / d itself that would amplify noise. */
static mesh mesh_new(int32_t side, double alpha)
{
    mesh g;
    size_t wide, x, y;
    g.side = side;
    g.wide = 2 * side;
    g.h = 1.0 / (side - 7);
    wide = (size_t)g.wide;
    g.field = (double *)zeros(2 * wide * wide, sizeof(double));
    g.kernel = (double *)zeros(wide * wide, sizeof(double));
    g.turn = (double *)zeros(wide, sizeof(double));
    for (x = 0; x < wide / 2; x++) {
        g.turn[2 * x] = cos(2 * PI * (double)x / (double)wide);
        g.turn[2 * x + 1] = sin(2 * PI * (double)x / (double)wide);
    }
    for (y = 0; y < wide; y++)
        for (x = 0; x < wide; x++) {
            double const dx = (double)(x < wide - x ? x : wide - x),
                         dy = (double)(y < wide - y ? y : wide - y);
            g.field[2 * (y * wide + x)] = mesh_kernel(alpha, g.h * hypot(dx, dy), g.h);
        }
    fft_2d(&g, g.field, g.wide, 1);
    for (x = 0; x < wide * wide; x++)
        g.kernel[x] = g.field[2 * x] / (double)(wide * wide) /
                      (alpha > 0 ? mesh_blur(&g, x % wide) * mesh_blur(&g, x / wide) : 1);
    return g;
}

static void mesh_free(mesh *g)
{
    free(g->field);
    free(g->kernel);
    free(g->turn);
}

/* The first of three nodes along an axis, and their weights. */
static int32_t mesh_weights(const mesh *g, double x, double w[3])
{
    double const at = x / g->h + 3;
    int32_t const node = (int32_t)floor(at + 0.5);
    double const u = at - node;
    w[0] = (0.5 - u) * (0.5 - u) / 2;
    w[1] = 0.75 - u * u;
    w[2] = (0.5 + u) * (0.5 + u) / 2;
    return node - 1;
}

static double *mesh_node(const mesh *g, int32_t x, int32_t y)
{
    return g->field + 2 * ((size_t)y * (size_t)g->wide + (size_t)x);
}

static void mesh_potential(mesh *g, const double *pos, const double *mass, int32_t n)
{
    size_t const all = (size_t)g->wide * (size_t)g->wide;
    double wx[3], wy[3];
    int32_t i, a, b;
    size_t k;
    memset(g->field, 0, 2 * all * sizeof(double));
    for (i = 0; i < n; i++) {
        int32_t const x = mesh_weights(g, pos[2 * i], wx), y = mesh_weights(g, pos[2 * i + 1], wy);
        for (b = 0; b < 3; b++)
            for (a = 0; a < 3; a++) *mesh_node(g, x + a, y + b) += mass[i] * wx[a] * wy[b];
    }
    fft_2d(g, g->field, g->side, 1);
    for (k = 0; k < 2 * all; k++) g->field[k] *= g->kernel[k / 2];
    fft_2d(g, g->field, g->side, -1);
}

/* Differences over 2 and 4 spacings, so that the error is of fourth order. `by`: to the next. */
static double mesh_slope(const mesh *g, const double *node, size_t by)
{
    double const near = *(node + by) - *(node - by), far = *(node + 2 * by) - *(node - 2 * by);
    return (8 * near - far) / (12 * g->h);
}

/* Accelerations [2 n] of bodies in the unit square: the slopes of sum of m / d. */
static void mesh_accelerations(mesh *g, const double *pos, const double *mass, int32_t n,
                               double *acc)
{
    double wx[3], wy[3];
    int32_t i, a, b;
    mesh_potential(g, pos, mass, n);
    for (i = 0; i < n; i++) {
        int32_t const x = mesh_weights(g, pos[2 * i], wx), y = mesh_weights(g, pos[2 * i + 1], wy);
        acc[2 * i] = acc[2 * i + 1] = 0;
        for (b = 0; b < 3; b++)
            for (a = 0; a < 3; a++) {
                const double *node = mesh_node(g, x + a, y + b);
                acc[2 * i] += wx[a] * wy[b] * mesh_slope(g, node, 2);
                acc[2 * i + 1] += wx[a] * wy[b] * mesh_slope(g, node, 2 * (size_t)g->wide);
            }
    }
}

#endif /* EXAMPLES_PARTICLE_MESH_H */
