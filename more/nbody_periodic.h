/* more/nbody_periodic.h - v0.2.0 - a square that repeats without end: a part of nbody.h
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   Forces and potentials in a square that repeats without end in both directions: desc.periodic.

   >>contents

       manual         use, periodic
       one element    square-images
       serial         check, lattice, images, images-lanes
       CUDA           cuda/nbody_periodic.cu

   >>use

   #define NBODY_WITH_PERIODIC before the first include of nbody.h, in each file that includes it.
   Then desc.periodic = 1, with desc.min and desc.size. Options, units, memory, threads and results
   are those of nbody.h, and so is the licence, at its end.

   >>periodic: a square that repeats without end

   With desc.periodic the square (desc.min, desc.size) and all that is in it repeat side by side, in
   both directions. Bodies and points may lie anywhere and count as at their place in the square;
   your positions are not changed. Offered are all laws and cores but NBODY_FUNCTION, and all calls,
   by DIRECT, and by FORCE_NODES with CHEBYSHEV and up to 17 levels. NBODY_BAD_OPTION:
   VIRTUAL_PARTICLES, order 1 and MASS_CENTRES, which are not made for it; and a function of yours,
   whose sum over images is not known.

   When the sum exists   The plain sum over all images does not converge. What is computed is the
       field of each body, of its images, and of minus its mass spread evenly over the plane: the
       Fourier series of the field without its constant term (Ewald). So the potential and the force
       have the mean 0 over the square; there is no term for a border far outside ("tin foil"), and
       the field does not depend on where the square begins.
       Total mass 0 (charges, vortices)   The backgrounds cancel. A sum over images in growing
           squares has the same forces and, up to a constant, potentials; but with NBODY_INVERSE a
           uniform force more, pi G / size^2 times the sum of m_j p_j (NBODY_VORTEX: as velocity,
           turned).
       Else   The background counts: NBODY_INVERSE, around a body: G m pi d / size^2, away from it;
           NBODY_VORTEX: a vorticity of minus the mean. With NBODY_INVERSE_SQUARE an even plane has
           no force in itself: it enters potentials alone.
       The potential at a body has that of its own images; their forces on it cancel.

   Images   Of the images of a source the nearest acts as in an open square, and the 8 around that
       one by one. Those farther away, at n of the lattice of whole numbers, in sides of the square,
       are a power series in d = x + i y. For each power of the distance (~: complex conjugate)

           |n - d|^(-2 s) = sum over a and b of A_a A_b d^a ~d^b / (n^(s + a) ~n^(s + b))
           A_a = s (s + 1) .. (s + a - 1) / a!

       Summed over all n only a - b = 0, 4, 8 .. is left, by the symmetry of the square (Rayleigh),
       times S(2 s + a + b, a - b), with S(p, q) the sum of cos(q angle of n) / |n|^p: >>lattice.
       A softened law is a sum of such powers: u^(-1/2) = |d|^-1 - softening^2 |d|^-3 / 2 ..; so the
       series needs a softening of 1/4 side at most.

   Tree   Levels 0 and 1 are always divided. Cells touch across the border, and lists go on there:
       from level 2 on, of all images of a cell one at most is in them. On level 2 the M2L table has
       all images of all 16 cells, except the one image that touches, if there is one (Schmidt, Lee;
       Challacombe). A GAUSSIAN core must end within a cell of level 2.

   Ewald: P. Ewald, Die Berechnung optischer und elektrostatischer Gitterpotentiale, Annalen der
             Physik 369, 1921.
   Rayleigh: Lord Rayleigh, On the influence of obstacles arranged in rectangular order upon the
             properties of a medium, Philosophical Magazine 34, 1892 (the sums S(p, p)).
   Schmidt: K. Schmidt, M. Lee, Implementing the fast multipole method in three dimensions, J. Stat.
             Phys. 63, 1991 (images by the expansions of the whole cell).
   Challacombe: M. Challacombe, C. White, M. Head-Gordon, Periodic boundary conditions and the fast
             multipole method, J. Chem. Phys. 107, 1997.
*/

#ifndef NBODY_H
#error "more/nbody_periodic.h is a part of nbody.h: define NBODY_WITH_PERIODIC and include nbody.h"
#endif
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nbody_periodic.h 0.2.0 and nbody.h are of different versions: copy both from one \
release"
#endif

#ifndef NBODY_I_PERIODIC
#error "nbody.h: define NBODY_WITH_PERIODIC before the first include of nbody.h in this file"
#endif

#ifndef NBODY_PERIODIC_H
#define NBODY_PERIODIC_H

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>square-images: which image of a cell or body acts
   ---------------------------------------------------------------------------------------------- */

/* Bodies outside a periodic square have images inside: its bounds are theirs. */
NBODY_FN void nbody_i_bound_square(const nbody_desc *desc, double least[2], double most[2])
{
    int a;
    for (a = 0; a < 2; a++) {
        least[a] = (double)desc->min[a];
        most[a] = least[a] + (double)desc->size;
    }
}

/* In a periodic square: a number of sides is subtracted, by an exact remainder. */
NBODY_I_SELDOM NBODY_FN nbody_real nbody_i_wrapped(const nbody_frame *frame, int axis, double value)
{
    double const origin = frame->origin[axis], end = origin + frame->edge,
                 at = value / frame->length, left = fmod(at - origin, frame->edge);
    nbody_real const x = (nbody_real)(origin + (left < 0 ? left + frame->edge : left));
    if (at >= origin && at < end) return (nbody_real)at;
    return (double)x >= end ? (nbody_real)origin : x; /* NaN stays */
}

NBODY_FN double nbody_i_middle_of(const nbody *sim, const nbody_cell *cell, int axis)
{
    return nbody_i_corner_of(sim, cell, axis) + nbody_i_edge(sim->frame, cell->level) / 2;
}

/* Periodic square: what has to be added to the coordinates of a cell to have its image that is
   nearest to `to`. */
NBODY_FN double nbody_i_shift(const nbody *sim, const nbody_cell *cell, int axis, double to)
{
    double const edge = sim->frame->edge, d = nbody_i_middle_of(sim, cell, axis) - to;
    return d > edge / 2 ? -edge : d < -edge / 2 ? edge : 0;
}

/* M2L without table and P2L: sources of cell `from` act on the nodes of a cell, from across the
   border, too. */
NBODY_FN void nbody_i_shift_on_nodes(const nbody *sim, int32_t from, const nbody_cell *cell,
                                     nbody_i_run *run)
{
    int a;
    for (a = 0; a < 2; a++)
        run->corner[a] -= nbody_i_shift(sim, &sim->cell[from], a, nbody_i_middle_of(sim, cell, a));
}

/* Periodic square: a run may act from across the border. Bodies are then given from the corner of
   their cell on, and targets from that of the image on. */
NBODY_I_SELDOM NBODY_FN void nbody_i_shift_run(const nbody *sim, const nbody_near *walk,
                                               nbody_i_run *run)
{
    const nbody_cell *cell = &sim->cell[walk->cell];
    int a, moves = 0;
    for (a = 0; a < 2; a++) {
        double to = (double)(a == 0 ? walk->x : walk->y);
        if (walk->of >= 0) to = nbody_i_middle_of(sim, &sim->cell[walk->of], a);
        run->shift[a] = nbody_i_shift(sim, cell, a, to);
        moves = moves || run->shift[a] < 0 || run->shift[a] > 0;
    }
    if (!run->x || !moves) return;
    for (a = 0; a < 2; a++) run->corner[a] = nbody_i_corner_of(sim, cell, a);
    run->local = run->moves = 1;
}

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif
#endif /* NBODY_PERIODIC_H */

#if defined(NBODY_I_IMPLEMENTED) && !defined(NBODY_PERIODIC_IMPLEMENTATION_DONE)
#define NBODY_PERIODIC_IMPLEMENTATION_DONE

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------
   >>check: what a periodic square needs; its method
   ---------------------------------------------------------------------------------------------- */

/* NBODY_AUTO in a periodic square: a term of DIRECT takes many times longer there, and a tree has
   16 * 16 pairs of cells at least. */
static void nbody_i_choose_periodic(nbody_desc *desc, int32_t n)
{
    desc->method = n <= 8 * (desc->order > 0 ? desc->order : 4) ? NBODY_DIRECT : NBODY_FORCE_NODES;
}

/* >>periodic says why. */
static nbody_result nbody_i_check_periodic(const nbody_desc *desc)
{
    double const size = (double)desc->size, softening = (double)desc->softening,
                 least = size * nbody_i_power(NBODY_I_REAL_KIND == 1 ? 22 : 51);
    double const parts =
        desc->core == NBODY_GAUSSIAN ? 4 * sqrt((double)NBODY_I_CORE_END) : 4;
    if (desc->periodic < 0 || desc->periodic > 1) return NBODY_BAD_OPTION;
    if (!desc->periodic) return NBODY_OK;
    if (desc->law == NBODY_FUNCTION || desc->method == NBODY_VIRTUAL_PARTICLES)
        return NBODY_BAD_OPTION;
    if (desc->method == NBODY_FORCE_NODES && desc->sources != NBODY_CHEBYSHEV)
        return NBODY_BAD_OPTION;
    if (desc->levels > NBODY_KEY_LEVELS || (desc->levels > 0 && desc->levels < 3))
        return NBODY_BAD_LEVELS;
    if (!(size > 0) || fabs((double)desc->min[0]) > least || fabs((double)desc->min[1]) > least ||
        !nbody_i_finite((double)(nbody_real)(size * 4)))
        return NBODY_BAD_SQUARE;
    return softening * parts <= size ? NBODY_OK : NBODY_BAD_NUMBER;
}

/* ----------------------------------------------------------------------------------------------
   >>lattice: the images of a source in a periodic square. Lengths are in sides of the square, and
   everything is computed in double

   The potential of unit mass at d, by all images but those that act one by one, is a polynomial:

       sum over j and b of factor[j][b] |d|^(2 b) Re d^(4 j)

   and the force is its gradient. Its constant term makes the mean of the whole potential 0: for
   NBODY_INVERSE ln (2 pi eta^2), where eta = 0.76823 is Dedekind's function of i (the potential is
   the logarithm of a theta function); what softening and cores add follows from their integrals.
   ---------------------------------------------------------------------------------------------- */

enum {
    NBODY_I_DEGREE = 56,                     /* of the polynomial, at most */
    NBODY_I_ANGLES = NBODY_I_DEGREE / 4 + 1, /* j = 0 .. */
    NBODY_I_POWERS = NBODY_I_DEGREE / 2 + 1, /* b = 0 .. */
    NBODY_I_IMAGES = 16                      /* pairs of cells on level 2: columns and rows apart */
};

/* What a lattice was made for. */
typedef struct nbody_i_lattice_key {
    double made, law, nodes, soften2, core2, log_side; /* made: 1 */
} nbody_i_lattice_key;

typedef struct nbody_i_lattice {
    nbody_i_lattice_key key;
    int32_t degree, angles;
    int32_t powers[NBODY_I_ANGLES];          /* terms of factor[j] */
    double factor[NBODY_I_ANGLES][NBODY_I_POWERS];
} nbody_i_lattice;

/* sum[p][j]: S(p, 4 j) over the lattice without 0 and the 8 points around it. */
typedef struct nbody_i_lattice_sums {
    double sum[NBODY_I_DEGREE + 2][NBODY_I_ANGLES];
} nbody_i_lattice_sums;

static double nbody_i_raised(double x, int power)
{
    double product = 1;
    for (; power > 0; power /= 2, x *= x)
        if (power % 2) product *= x;
    return product;
}

/* What the four or eight points (x, y), (y, x), (-x, y) .. have in S(p, 4 j). */
static double nbody_i_lattice_points(int x, int y, int p, int j)
{
    double const d2 = x * x + y * y, re = (double)(x * x - y * y) / d2, im = 2.0 * x * y / d2;
    double angle = 1, last = 1, next;
    int k;
    /* cos(k t) from those of k - 1 and k - 2; t is 4 times the angle of the point, re and im are
       cosine and sine of twice it */
    for (k = 1; k <= j; k++) {
        next = k == 1 ? re * re - im * im : 2 * (re * re - im * im) * angle - last;
        last = angle;
        angle = next;
    }
    return angle * nbody_i_raised(1 / sqrt(d2), p) * (y == 0 || y == x ? 4 : 8);
}

/* S(p, 4 j) from p = 13 on: by summation, as far as terms count. */
static double nbody_i_sum_lattice(int p, int j)
{
    int const reach = 2 + 320 / p;
    double sum = 0;
    int x, y;
    for (x = reach; x >= 2; x--)
        for (y = 0; y <= x; y++) sum += nbody_i_lattice_points(x, y, p, j);
    return sum;
}

/* Up to p = 12 the sums converge slowly, or not at all: values of their analytic continuation
   (Epstein's zeta function, by its series of incomplete gamma functions with 30 digits). S(2, 0):
   less its pole, so that it is the sum over a large circle of radius r minus 2 pi ln r
   (Sierpinski). */
static void nbody_i_make_lattice_sums(nbody_i_lattice_sums *sums)
{
    static const double all[12][4] = {{-3.9002649200019558828, 0, 0, 0},
                                      {2.5849817595792532171, 0, 0, 0},
                                      {9.0336216831009503057, 0, 0, 0},
                                      {6.0268120396919401235, 3.1512120021538975382, 0, 0},
                                      {5.0902582336654829457, 3.373865696467986292, 0, 0},
                                      {4.6589136156038434402, 3.5429198881319924621, 0, 0},
                                      {4.4231177876781660007, 3.6690008505201028512, 0, 0},
                                      {4.2814306608057805856, 3.7617660261658303018,
                                       4.2557730353651895184, 0},
                                      {4.1912683627563304967, 3.8293237367610286442,
                                       4.1801052452823683376, 0},
                                      {4.1317748017458798703, 3.8781465978915269679,
                                       4.1268719909520464669, 0},
                                      {4.0915873133521373822, 3.913227593773251626,
                                       4.0894210383207213012, 0},
                                      {4.0640219277213034848, 3.9383268181932438203,
                                       4.0630610150914297341, 3.9388490128279703748}};
    int p, j;
    memset(sums, 0, sizeof *sums);
    for (p = 1; p <= NBODY_I_DEGREE + 1; p++)
        for (j = 0; 4 * j <= p && j < NBODY_I_ANGLES; j++)
            sums->sum[p][j] = p > 12 ? nbody_i_sum_lattice(p, j)
                                     : all[p - 1][j] - nbody_i_lattice_points(1, 0, p, j) -
                                           nbody_i_lattice_points(1, 1, p, j);
}

/* A_a of >>periodic. */
static double nbody_i_rising(double s, int a)
{
    double product = 1;
    int k;
    for (k = 0; k < a; k++) product *= (s + k) / (k + 1);
    return product;
}

/* Adds w |n - d|^(-2 s), summed over n; w has the power `used` of the softening. */
static void nbody_i_add_powers(nbody_i_lattice *lattice, const nbody_i_lattice_sums *sums, double s,
                               double w, int used)
{
    int j, b;
    for (j = 0; used + 4 * j <= lattice->degree; j++)
        for (b = 0; used + 4 * j + 2 * b <= lattice->degree; b++)
            lattice->factor[j][b] += w * (j > 0 ? 2 : 1) * nbody_i_rising(s, b + 4 * j) *
                                     nbody_i_rising(s, b) *
                                     sums->sum[(int)(2 * s) + 2 * b + 4 * j][j];
}

/* NBODY_INVERSE: ln |n - d| = ln |n| - Re (d / n + d^2 / 2 n^2 ..), the background, and what
   softening adds: ln(1 + e / |d|^2) / 2 = e / 2 |d|^2 - e^2 / 4 |d|^4 .., e = softening^2. */
static void nbody_i_add_logarithms(nbody_i_lattice *lattice, const nbody_i_lattice_sums *sums)
{
    double const pi = 3.14159265358979324, e = lattice->key.soften2;
    double w = e;
    int j, k;
    lattice->factor[0][0] += 1.3105329259115095 - 1.3862943611198906 /* of 8 points: ln 4 */;
    lattice->factor[0][0] -= pi / 2 * lattice->key.core2;
    lattice->factor[0][1] -= pi / 2;
    for (j = 1; 4 * j <= lattice->degree; j++)
        lattice->factor[j][0] -= sums->sum[4 * j][j] / (4 * j);
    if (!(e > 0)) return;
    lattice->factor[0][0] -= pi / 2 * e * (1 - log(e));
    for (k = 1; 2 * k <= lattice->degree; k++, w *= -e)
        nbody_i_add_powers(lattice, sums, k, w / (2 * k), 2 * k);
}

/* NBODY_INVERSE_SQUARE: -(|d|^2 + e)^(-1/2) = -|d|^-1 + e |d|^-3 / 2 ..; its integral over the
   plane differs by 2 pi softening from that of -1 / |d|. */
static void nbody_i_add_roots(nbody_i_lattice *lattice, const nbody_i_lattice_sums *sums)
{
    double const pi = 3.14159265358979324, e = lattice->key.soften2;
    double w = -1;
    int k;
    lattice->factor[0][0] -= 2 * pi * sqrt(e);
    for (k = 0; 2 * k <= lattice->degree && (k == 0 || e > 0); k++, w *= -e * (k - 0.5) / k)
        nbody_i_add_powers(lattice, sums, k + 0.5, w, 2 * k);
}

/* The degree: terms shrink by (sqrt(1/2) + softening) / 2. */
static int32_t nbody_i_lattice_degree(double softening)
{
    double const least = NBODY_I_REAL_KIND == 1 ? 1e-10 : 1e-17;
    double term = 1;
    int32_t degree = 0;
    for (; term > least && degree < NBODY_I_DEGREE; degree += 2)
        term *= (0.5 + softening * (1.4142135623730951 + softening)) / 4;
    return degree;
}

static void nbody_i_make_lattice(nbody_i_lattice *lattice)
{
    nbody_i_lattice_sums sums;
    int32_t j, b;
    nbody_i_make_lattice_sums(&sums);
    memset(lattice->factor, 0, sizeof lattice->factor);
    lattice->degree = nbody_i_lattice_degree(sqrt(lattice->key.soften2));
    lattice->angles = lattice->degree / 4 + 1;
    if (lattice->key.law > 0) nbody_i_add_logarithms(lattice, &sums);
    else nbody_i_add_roots(lattice, &sums);
    lattice->factor[0][0] -= lattice->key.log_side;
    for (j = 0; j < lattice->angles; j++) {
        lattice->powers[j] = 1;
        for (b = 0; b < NBODY_I_POWERS; b++)
            if (lattice->factor[j][b] < 0 || lattice->factor[j][b] > 0) lattice->powers[j] = b + 1;
    }
}

/* The eight images around the nearest. The sum of logarithms is that of a product. */
NBODY_FN void nbody_i_add_ring(const nbody_i_lattice *lattice, double x, double y, int potential,
                               double field[NBODY_I_PARTS])
{
    int const inverse = lattice->key.law > 0;
    double product = 1;
    int k;
    for (k = 0; k < 9; k++) {
        double const dx = x + (k % 3 - 1), dy = y + (k / 3 - 1),
                     u = nbody_i_product(dx, dx) + nbody_i_product(dy, dy) + lattice->key.soften2;
        double root, g;
        if (k == 4) continue;
        root = inverse ? 0 : 1 / sqrt(u);
        g = inverse ? 1 / u : nbody_i_product(nbody_i_product(root, root), root);
        field[NBODY_I_X] += nbody_i_product(g, dx);
        field[NBODY_I_Y] += nbody_i_product(g, dy);
        field[NBODY_I_POTENTIAL] -= root;
        product *= u;
    }
    if (inverse && potential) field[NBODY_I_POTENTIAL] += nbody_i_log(product) / 2;
}

/* The polynomial and its gradient. power: d^(4 j - 1), then d^(4 j). */
NBODY_FN void nbody_i_add_polynomial(const nbody_i_lattice *lattice, double x, double y,
                                     double field[NBODY_I_PARTS])
{
    double const d2 = nbody_i_product(x, x) + nbody_i_product(y, y);
    nbody_i_complex d, fourth, power = {0, 0};
    int32_t j, b;
    d.re = x;
    d.im = y;
    fourth = nbody_i_complex_product(nbody_i_complex_product(d, d), nbody_i_complex_product(d, d));
    for (j = 0; j < lattice->angles; j++) {
        double value = 0, slope = 0; /* of the polynomial in |d|^2 */
        double re = 1;               /* of d^(4 j) */
        for (b = lattice->powers[j] - 1; b >= 0; b--) {
            slope = nbody_i_product(slope, d2) + value;
            value = nbody_i_product(value, d2) + lattice->factor[j][b];
        }
        if (j == 1) power = nbody_i_complex_product(d, nbody_i_complex_product(d, d));
        else if (j > 1) power = nbody_i_complex_product(power, fourth);
        if (j > 0) re = nbody_i_product(power.re, x) - nbody_i_product(power.im, y);
        field[NBODY_I_X] += nbody_i_product(nbody_i_product(2 * slope, x), re) +
                            nbody_i_product(nbody_i_product(4 * j, value), power.re);
        field[NBODY_I_Y] += nbody_i_product(nbody_i_product(2 * slope, y), re) -
                            nbody_i_product(nbody_i_product(4 * j, value), power.im);
        field[NBODY_I_POTENTIAL] += nbody_i_product(value, re);
    }
}

/* All images of a source of unit mass at d from a target, but the nearest: |x|, |y| <= 1/2. The
   potential is to be added to one with the logarithm of your lengths. */
NBODY_FN void nbody_i_images(const nbody_i_lattice *lattice, double x, double y, int potential,
                             double field[NBODY_I_PARTS])
{
    field[NBODY_I_X] = field[NBODY_I_Y] = field[NBODY_I_POTENTIAL] = 0;
    nbody_i_add_ring(lattice, x, y, potential, field);
    nbody_i_add_polynomial(lattice, x, y, field);
}

/* The nearest image, where it lies beyond the core. */
NBODY_FN void nbody_i_add_nearest(const nbody_i_lattice *lattice, double x, double y,
                                  double field[NBODY_I_PARTS])
{
    double const u = nbody_i_product(x, x) + nbody_i_product(y, y) + lattice->key.soften2,
                 root = 1 / sqrt(u), g = lattice->key.law > 0 ? 1 / u : root / u;
    field[NBODY_I_X] += nbody_i_product(g, x);
    field[NBODY_I_Y] += nbody_i_product(g, y);
    field[NBODY_I_POTENTIAL] +=
        lattice->key.law > 0 ? nbody_i_log(u) / 2 + lattice->key.log_side : -root;
}

/* An entry of the table of level 2: columns and rows apart are -1 .. 2, as 2 is also -2. Images of
   cells that touch act on deeper levels: -1 .. 1. */
NBODY_FN void nbody_i_image_entry(const nbody *sim, int apart, int32_t b, int32_t a,
                                  double entry[NBODY_I_PARTS])
{
    int const side = sim->rule.side, columns = apart % 4 - 1, rows = apart / 4 - 1;
    double x = (columns + ((double)sim->rule.t[b % side] - (double)sim->rule.t[a % side])) / 4,
           y = (rows + ((double)sim->rule.t[b / side] - (double)sim->rule.t[a / side])) / 4;
    if (x > 0.5) x -= 1;
    if (y > 0.5) y -= 1;
    nbody_i_images(sim->lattice, x, y, 1, entry);
    if (columns == 2 || rows == 2) nbody_i_add_nearest(sim->lattice, x, y, entry);
}

/* The rows of one pair of cells in `images`. The layout is that of >>table, with 16 offsets. */
NBODY_FN nbody_real *nbody_i_image_rows(const nbody *sim, int apart, int component)
{
    return sim->images + (size_t)((apart * NBODY_I_PARTS + component) * sim->per_cell) *
                             (size_t)nbody_i_row(sim);
}

NBODY_FN void nbody_i_fill_image_entry(const nbody *sim, int apart, int32_t b, int32_t a)
{
    double entry[NBODY_I_PARTS] = {0, 0, 0};
    int p;
    if (a < sim->nodes) nbody_i_image_entry(sim, apart, b, a, entry);
    for (p = 0; p < NBODY_I_PARTS; p++)
        nbody_i_image_rows(sim, apart, p)[b * nbody_i_row(sim) + a] = (nbody_real)entry[p];
}

static void nbody_i_fill_images(const nbody *sim)
{
    int apart;
    int32_t a, b;
    for (apart = 0; apart < NBODY_I_IMAGES; apart++)
        for (b = 0; b < sim->per_cell; b++)
            for (a = 0; a < nbody_i_row(sim); a++) nbody_i_fill_image_entry(sim, apart, b, a);
}

static size_t nbody_i_lattice_bytes(const nbody *sim)
{
    return sizeof(nbody_i_lattice) + (size_t)NBODY_I_IMAGES * NBODY_I_PARTS * (size_t)sim->nodes *
                                         (size_t)nbody_i_row(sim) * sizeof(nbody_real);
}

/* Room for the lattice, without contents. */
static nbody_result nbody_i_reserve_lattice(nbody *sim)
{
    size_t const bytes = nbody_i_lattice_bytes(sim), had = sim->block[NBODY_I_LATTICE].bytes;
    nbody_result const result = nbody_i_grow(sim, NBODY_I_LATTICE, bytes, 0, NBODY_I_EXACT);
    if (result != NBODY_OK) return result;
    if (bytes > had) memset(sim->block[NBODY_I_LATTICE].memory, 0, bytes);
    return NBODY_OK;
}

static nbody_i_lattice_key nbody_i_lattice_key_of(const nbody *sim)
{
    nbody_i_law const law = nbody_i_law_in(&sim->desc, 0);
    double const edge2 = sim->frame->edge * sim->frame->edge;
    nbody_i_lattice_key key;
    key.made = 1;
    key.law = law.law == NBODY_INVERSE;
    key.nodes = sim->nodes;
    key.soften2 = law.softened ? sim->frame->soften2 / edge2 : 0;
    key.core2 = law.core ? sim->frame->core2 / edge2 : 0;
    key.log_side = law.law == NBODY_INVERSE ? nbody_i_log(sim->frame->size) : 0;
    return key;
}

static void nbody_i_bind_lattice(nbody *sim, void *memory)
{
    sim->lattice = (nbody_i_lattice *)memory;
    sim->images = sim->nodes > 0 ? (nbody_real *)(void *)(sim->lattice + 1) : NULL;
}

/* Makes the lattice and its table, unless those that are there fit: they are kept as long as the
   key is the same. */
static nbody_result nbody_i_prepare_lattice(nbody *sim, nbody_i_growth growth)
{
    size_t const bytes = nbody_i_lattice_bytes(sim);
    nbody_block *block = &sim->block[NBODY_I_LATTICE];
    int const fresh = bytes > block->bytes;
    nbody_i_lattice_key const key = nbody_i_lattice_key_of(sim);
    nbody_result const result = nbody_i_grow(sim, NBODY_I_LATTICE, bytes, 0, growth);
    if (result != NBODY_OK) return result;
    nbody_i_bind_lattice(sim, block->memory);
    if (!fresh && memcmp(&key, &sim->lattice->key, sizeof key) == 0) return NBODY_OK;
    sim->lattice->key = key;
    nbody_i_make_lattice(sim->lattice);
    if (sim->images) nbody_i_fill_images(sim);
    return NBODY_OK;
}

/* From sides of the square to units of the arrays: factors of forces, and of the potential. */
NBODY_FN void nbody_i_lattice_scale(const nbody *sim, double scale[NBODY_I_PARTS])
{
    double const over = 1 / sim->frame->edge;
    int const inverse = sim->lattice->key.law > 0;
    scale[NBODY_I_X] = scale[NBODY_I_Y] = inverse ? over : over * over;
    scale[NBODY_I_POTENTIAL] = inverse ? 1 : over;
}

/* ----------------------------------------------------------------------------------------------
   >>images: periodic squares: the nodes of level 2, and what DIRECT and points do instead
   ---------------------------------------------------------------------------------------------- */

/* Which cells exist on level 2, by 4 y + x; -1: empty. */
NBODY_FN void nbody_i_find_sixteen(const nbody *sim, int32_t at[NBODY_I_IMAGES])
{
    int32_t c;
    for (c = 0; c < NBODY_I_IMAGES; c++) at[c] = -1;
    for (c = sim->frame->level_first[2]; c < sim->frame->level_first[3]; c++)
        at[4 * sim->cell[c].y + sim->cell[c].x] = c;
}

/* Of the 16 cells, the one whose pair with cell (x, y) = (cell % 4, cell / 4) has the number
   `apart`. */
NBODY_FN int32_t nbody_i_sixteen_apart(const int32_t sixteen[NBODY_I_IMAGES], int32_t cell,
                                       int apart)
{
    int32_t const x = (cell + apart + 3) % 4, y = (cell / 4 + apart / 4 + 3) % 4;
    return sixteen[4 * y + x];
}

/* nbody_i_lattice_scale, for the table of level 2. */
NBODY_FN void nbody_i_image_scale(const nbody *sim, nbody_real scale[NBODY_I_PARTS])
{
    double factor[NBODY_I_PARTS];
    int p;
    nbody_i_lattice_scale(sim, factor);
    for (p = 0; p < NBODY_I_PARTS; p++) scale[p] = (nbody_real)factor[p];
}

/* M2L: all images of one cell on node a of another, as nbody_i_add_table. */
NBODY_FN void nbody_i_add_image(const nbody *sim, const nbody_i_law *law, int apart, int32_t from,
                                int32_t a, const nbody_real scale[NBODY_I_PARTS],
                                nbody_i_target *t)
{
    const nbody_real *mass = sim->vm + (size_t)from * (size_t)sim->per_cell;
    int32_t b;
    int p;
    for (p = 0; p < NBODY_I_PARTS - !law->potential; p++) {
        const nbody_real *row = nbody_i_image_rows(sim, apart, p) + a;
        for (b = 0; b < sim->per_cell; b++)
            t->partial[p] += nbody_i_times(row[b * nbody_i_row(sim)], mass[b]);
    }
    t->terms += sim->per_cell;
    if (t->terms >= NBODY_CHUNK) nbody_i_carry_table(t, scale);
}

/* M2L on level 2: all images of the 16 cells at node a of cell (x, y) = (cell % 4, cell / 4), which
   may be empty. The faster form has lanes: >>images-lanes. */
NBODY_FN nbody_i_target nbody_i_image_node(const nbody *sim, const nbody_i_law *law,
                                           const int32_t sixteen[NBODY_I_IMAGES], int32_t cell,
                                           int32_t a)
{
    nbody_i_target t = nbody_i_target_at(0, 0, -1);
    nbody_real scale[NBODY_I_PARTS];
    int apart;
    nbody_i_image_scale(sim, scale);
    for (apart = 0; apart < NBODY_I_IMAGES; apart++) {
        int32_t const from = nbody_i_sixteen_apart(sixteen, cell, apart);
        if (from >= 0) nbody_i_add_image(sim, law, apart, from, a, scale, &t);
    }
    nbody_i_carry_table(&t, scale);
    return t;
}

/* From a target to the nearest image of a source. */
NBODY_FN double nbody_i_nearest(const nbody *sim, double d)
{
    double const edge = sim->frame->edge;
    return d > edge / 2 ? d - edge : d < -edge / 2 ? d + edge : d;
}

/* DIRECT: all bodies on a target, place -1: a point. The nearest images act as everywhere, the
   others in double. */
NBODY_FN nbody_i_target nbody_i_sum_images(const nbody *sim, const nbody_i_law *law, nbody_real x,
                                           nbody_real y, int32_t place)
{
    nbody_i_target t = nbody_i_target_at(0, 0, place);
    double field[NBODY_I_PARTS], scale[NBODY_I_PARTS], sum[NBODY_I_PARTS] = {0, 0, 0};
    int32_t from;
    int p;
    for (from = 0; from < sim->n; from++) {
        double const dx = nbody_i_nearest(sim, (double)sim->x[from] - (double)x),
                     dy = nbody_i_nearest(sim, (double)sim->y[from] - (double)y);
        nbody_i_source source = {0, 0, 0, 0, 0, 0, 0};
        source.x = (nbody_real)dx;
        source.y = (nbody_real)dy;
        source.m = sim->m[from];
        source.place = from;
        nbody_i_add(law, &source, 0, &t);
        nbody_i_images(sim->lattice, dx / sim->frame->edge, dy / sim->frame->edge, law->potential,
                       field);
        for (p = 0; p < NBODY_I_PARTS; p++)
            sum[p] += nbody_i_product((double)sim->m[from], field[p]);
    }
    nbody_i_carry_target(&t);
    nbody_i_lattice_scale(sim, scale);
    for (p = 0; p < NBODY_I_PARTS; p++) t.partial[p] = (nbody_real)(sum[p] * scale[p]);
    nbody_i_carry_target(&t);
    return t;
}

/* DIRECT: `count` bodies from `first` on. */
static void nbody_i_sum_images_on(const nbody *sim, int sets, const nbody_i_law *law,
                                  const nbody_i_outcome *out, int32_t first, int32_t count)
{
    int32_t place;
    int s;
    for (s = 0; s < sets; s++)
        for (place = first; place < first + count; place++) {
            nbody_i_target const t =
                nbody_i_sum_images(&sim[s], law, sim->x[place], sim->y[place], place);
            nbody_i_store(&sim[s], &out[s], sim->id[place], t.total, t.compensation);
        }
}

/* The nodes of all 16 cells of level 2, for points: an empty cell has none. */
typedef struct nbody_i_image_nodes {
    nbody_real value[NBODY_I_PARTS][NBODY_I_IMAGES][NBODY_MAX_ORDER * NBODY_MAX_ORDER];
} nbody_i_image_nodes;

/* The nodes of the cells of level 2. */
static void nbody_i_plain_image_nodes(const nbody *sim, const nbody_i_law *law)
{
    int32_t sixteen[NBODY_I_IMAGES], c, a;
    nbody_i_find_sixteen(sim, sixteen);
    for (c = 0; c < NBODY_I_IMAGES; c++) {
        if (sixteen[c] < 0) continue;
        for (a = 0; a < sim->nodes; a++) {
            nbody_i_target const t = nbody_i_image_node(sim, law, sixteen, c, a);
            nbody_i_store_node(sim, law, sixteen[c], a, &t);
        }
    }
}

#ifndef NBODY_PLAIN

/* ----------------------------------------------------------------------------------------------
   >>images-lanes: periodic squares: the nodes of level 2
   ---------------------------------------------------------------------------------------------- */

/* M2L: all images of one cell, as nbody_i_add_offset. */
static void nbody_i_add_images(const nbody *sim, const nbody_i_law *law, int apart, int32_t from,
                               const nbody_real scale[NBODY_I_PARTS], nbody_i_lanes *lanes)
{
    int32_t const row = nbody_i_row(sim);
    const nbody_real *mass = sim->vm + (size_t)from * (size_t)sim->per_cell;
    int32_t a;
    int p;
    for (a = 0; a < row; a += NBODY_I_LANES, lanes++) {
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++)
            nbody_i_lanes_rows(nbody_i_image_rows(sim, apart, p) + a, row, mass, sim->per_cell,
                               lanes->partial[p]);
        lanes->terms += sim->per_cell;
        if (lanes->terms >= NBODY_CHUNK) nbody_i_carry_lanes_table(lanes, 1, scale);
    }
}

/* nbody_i_image_node at all nodes of the cell, 16 at a time. */
static void nbody_i_image_nodes_of(const nbody *sim, const nbody_i_law *law,
                                   const int32_t sixteen[NBODY_I_IMAGES], int32_t cell,
                                   nbody_real *const to[NBODY_I_PARTS])
{
    nbody_i_lanes lanes[NBODY_I_NODE_LANES];
    nbody_real scale[NBODY_I_PARTS];
    int32_t a;
    int apart, p;
    nbody_i_image_scale(sim, scale);
    nbody_i_clear_lanes(lanes, NBODY_I_NODE_LANES);
    for (apart = 0; apart < NBODY_I_IMAGES; apart++) {
        int32_t const from = nbody_i_sixteen_apart(sixteen, cell, apart);
        if (from >= 0) nbody_i_add_images(sim, law, apart, from, scale, lanes);
    }
    for (a = 0; a < nbody_i_row(sim); a += NBODY_I_LANES)
        nbody_i_carry_lanes_table(&lanes[a / NBODY_I_LANES], 1, scale);
    for (a = 0; a < sim->nodes; a++)
        for (p = 0; p < NBODY_I_PARTS - !law->potential; p++) {
            const nbody_i_lanes *group = &lanes[a / NBODY_I_LANES];
            int const k = a % NBODY_I_LANES;
            to[p][a] = group->total[p][k] + group->compensation[p][k];
        }
}

/* The nodes of the cells of level 2. */
static void nbody_i_make_image_nodes(const nbody *sim, int sets, const nbody_i_law *law)
{
    int32_t sixteen[NBODY_I_IMAGES], c;
    int s;
    nbody_i_find_sixteen(sim, sixteen);
    for (s = 0; s < sets; s++)
        for (c = 0; c < NBODY_I_IMAGES; c++) {
            size_t const first = (size_t)(sixteen[c] < 0 ? 0 : sixteen[c]) * (size_t)sim->nodes;
            nbody_real *to[NBODY_I_PARTS];
            to[NBODY_I_X] = sim[s].fx + first;
            to[NBODY_I_Y] = sim[s].fy + first;
            to[NBODY_I_POTENTIAL] = law->potential ? sim[s].fp + first : NULL;
            if (sixteen[c] >= 0) nbody_i_image_nodes_of(&sim[s], law, sixteen, c, to);
        }
}

#endif /* NBODY_PLAIN */

#if defined(__cplusplus) && !defined(NEARFIELD_NAMESPACE)
}
#endif

#ifdef NBODY_CUDA
#include "../cuda/nbody_periodic.cu"
#endif

#endif /* NBODY_PERIODIC_IMPLEMENTATION_DONE */
