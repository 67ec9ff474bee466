/* fluidised_bed_gas.h - the gas between the grains: a coarse grid of porosity, velocities and
   pressure.
   SPDX-License-Identifier: MIT OR Unlicense

   In a cell, e is the porosity (the part that is gas), s the mean velocity of the grains weighted
   by their volume, w the velocity of the gas against them. Gas of this density has no inertia
   beside the drag (1 to 200 here), so drag and pressure balance, and no volume is lost:

       e grad p = -b w                     b: drag per volume and speed, by e and w (>>drag)
       div (e w + s) = 0                   e w + s: the flow of volume of gas and grains

   With k = e^2 / b that is one linear equation for the pressure, div (k grad p) = div s
   (>>pressure; b is of the w before). At the bottom the flow is the superficial velocity U, at the
   top p = 0, and nothing goes through the walls.

   >>gas       cells
   >>drag      Gidaspow, Multiphase Flow and Fluidization, 1994: Ergun 1952 below e = 0.8, Wen and
               Yu 1966 above
   >>pressure  conjugate gradients
   >>onset     the velocity at which the drag carries the grains, by formulas */

#ifndef FLUIDISED_BED_GAS_H
#define FLUIDISED_BED_GAS_H

/* -------------------------------------------------------------------------------------------------
   >>gas: arrays by cell, rows of `wide` cells from the bottom up
   ---------------------------------------------------------------------------------------------- */

/* Air at 20 degrees; kg, m, s. */
static double const gas_density = 1.2, gas_viscosity = 1.8e-5;

typedef struct gas {
    int32_t wide, high, cells;
    double edge, depth, diameter;       /* of a cell, of the bed, of a grain */
    double inflow;                      /* superficial velocity U */
    double *porosity, *drag, *pass;     /* e, b, k */
    double *solid[2];                   /* s */
    double *slope[2];                   /* grad p */
    double *flow[2];                    /* s through the left and the lower face */
    double *pressure, *rest, *step, *image, *own; /* of the conjugate gradients */
    int64_t rounds;                     /* of those, in all */
} gas;

static void gas_new(gas *g, int32_t wide, int32_t high, double edge, double depth, double diameter)
{
    double **const arrays[] = {&g->porosity, &g->drag, &g->pass, &g->solid[0], &g->solid[1],
                               &g->slope[0], &g->slope[1], &g->flow[0], &g->flow[1], &g->pressure,
                               &g->rest, &g->step, &g->image, &g->own};
    size_t k;
    memset(g, 0, sizeof *g);
    g->wide = wide;
    g->high = high;
    g->cells = wide * high;
    g->edge = edge;
    g->depth = depth;
    g->diameter = diameter;
    for (k = 0; k < sizeof arrays / sizeof arrays[0]; k++)
        *arrays[k] = (double *)zeros((size_t)g->cells, sizeof(double));
}

static void gas_free(gas *g)
{
    double *const arrays[] = {g->porosity, g->drag, g->pass, g->solid[0], g->solid[1],
                              g->slope[0], g->slope[1], g->flow[0], g->flow[1], g->pressure,
                              g->rest, g->step, g->image, g->own};
    size_t k;
    for (k = 0; k < sizeof arrays / sizeof arrays[0]; k++) free(arrays[k]);
}

/* -------------------------------------------------------------------------------------------------
   >>drag
   ---------------------------------------------------------------------------------------------- */

/* b for spheres of diameter d at porosity e and slip w: force per volume of the bed and speed. */
static double drag_of(double e, double w, double d)
{
    double reynolds, c;
    if (e < 0.8)
        return 150 * (1 - e) * (1 - e) * gas_viscosity / (e * d * d) +
               1.75 * (1 - e) * gas_density * w / d;
    reynolds = fmax(1e-3, e * gas_density * w * d / gas_viscosity);
    c = reynolds < 1000 ? 24 / reynolds * (1 + 0.15 * pow(reynolds, 0.687)) : 0.44;
    w = reynolds * gas_viscosity / (e * gas_density * d);
    return 0.75 * c * e * (1 - e) * gas_density * w / d * pow(e, -2.65);
}

/* From sums over the grains of each cell {volume, volume * velocity along x, along y}. Cells
   without grains let the gas pass as if a thousandth were grains. */
static void gas_fill(gas *g, const float *sums)
{
    double const room = g->edge * g->edge * g->depth;
    int32_t c;
    for (c = 0; c < g->cells; c++) {
        const float *sum = sums + 3 * (size_t)c;
        double const volume = (double)sum[0], e = fmin(0.999, fmax(0.3, 1 - volume / room)),
                     w = hypot(g->slope[0][c], g->slope[1][c]) * g->pass[c] / e;
        g->solid[0][c] = volume > 0 ? (double)sum[1] / volume : 0;
        g->solid[1][c] = volume > 0 ? (double)sum[2] / volume : 0;
        g->porosity[c] = e;
        g->drag[c] = drag_of(e, w > 0 ? w : g->inflow / e, g->diameter);
        g->pass[c] = e * e / g->drag[c];
    }
}

/* -------------------------------------------------------------------------------------------------
   >>pressure
   ---------------------------------------------------------------------------------------------- */

/* k at the face between two cells, as for two layers one behind the other. */
static double pass_between(const gas *g, int32_t a, int32_t b)
{
    return 2 * g->pass[a] * g->pass[b] / (g->pass[a] + g->pass[b]);
}

/* What flows out of cell c under the pressures p, times the edge; the bottom and the walls let
   nothing pass, outside of the top p is 0. own[c]: by how much for 1 of its own pressure. */
static double gas_outflow(const gas *g, const double *p, int32_t c)
{
    int32_t const x = c % g->wide, y = c / g->wide;
    int32_t const near[4] = {x > 0 ? c - 1 : -1, x + 1 < g->wide ? c + 1 : -1,
                             y > 0 ? c - g->wide : -1, y + 1 < g->high ? c + g->wide : -1};
    double out = 0, own = 0;
    int k;
    for (k = 0; k < 4; k++) {
        double pass;
        if (near[k] < 0) continue;
        pass = pass_between(g, c, near[k]);
        out += pass * (p[c] - p[near[k]]);
        own += pass;
    }
    if (y + 1 == g->high) {
        out += 2 * g->pass[c] * p[c];
        own += 2 * g->pass[c];
    }
    g->own[c] = own;
    return out;
}

/* Mean velocity of the grains at the faces, by their volume; none at the walls, U at the bottom. */
static void gas_faces(gas *g)
{
    int32_t c;
    int a;
    for (c = 0; c < g->cells; c++)
        for (a = 0; a < 2; a++) {
            int32_t const back = a ? g->wide : 1, at_wall = a ? c < g->wide : c % g->wide == 0;
            double const own = at_wall ? 0 : 1 - g->porosity[c],
                         other = at_wall ? 0 : 1 - g->porosity[c - back];
            g->flow[a][c] = at_wall ? (a ? g->inflow : 0)
                                    : (own * g->solid[a][c] + other * g->solid[a][c - back]) /
                                          (own + other);
        }
}

/* What the grains, and the inflow, bring into cell c, times the edge. */
static double gas_brought(const gas *g, int32_t c)
{
    int32_t const x = c % g->wide, y = c / g->wide;
    return g->edge * (g->flow[0][c] - (x + 1 < g->wide ? g->flow[0][c + 1] : 0) + g->flow[1][c] -
                      (y + 1 < g->high ? g->flow[1][c + g->wide] : 0));
}

/* rest = what is brought less what flows out; step = rest / own, the first direction. Returns the
   product of both. */
static double gas_first(gas *g, double *brought)
{
    double product = 0;
    int32_t c;
    *brought = 0;
    for (c = 0; c < g->cells; c++) {
        double const in = gas_brought(g, c);
        g->rest[c] = in - gas_outflow(g, g->pressure, c);
        g->step[c] = g->rest[c] / g->own[c];
        product += g->rest[c] * g->step[c];
        *brought += in * in / g->own[c];
    }
    return product;
}

/* One round: along step, then the next step. Returns the new product of rest and rest / own. */
static double gas_round(gas *g, double product)
{
    double along = 0, next = 0, part;
    int32_t c;
    for (c = 0; c < g->cells; c++) {
        g->image[c] = gas_outflow(g, g->step, c);
        along += g->image[c] * g->step[c];
    }
    part = along > 0 ? product / along : 0;
    for (c = 0; c < g->cells; c++) {
        g->pressure[c] += part * g->step[c];
        g->rest[c] -= part * g->image[c];
        g->image[c] = g->rest[c] / g->own[c];
        next += g->rest[c] * g->image[c];
    }
    part = next / product;
    for (c = 0; c < g->cells; c++) g->step[c] = g->image[c] + part * g->step[c];
    return next;
}

/* grad p of a cell is the mean of those at its faces: so all cells of a column, times the edge, add
   up to the pressure at the bottom. */
static void gas_slopes(gas *g)
{
    const double *p = g->pressure;
    int32_t c;
    for (c = 0; c < g->cells; c++) {
        int32_t const x = c % g->wide, y = c / g->wide;
        double const left = x > 0 ? p[c] - p[c - 1] : 0,
                     right = x + 1 < g->wide ? p[c + 1] - p[c] : 0,
                     below = y > 0 ? p[c] - p[c - g->wide] : -g->inflow * g->edge / g->pass[c],
                     above = y + 1 < g->high ? p[c + g->wide] - p[c] : -2 * p[c];
        g->slope[0][c] = (left + right) / (2 * g->edge);
        g->slope[1][c] = (below + above) / (2 * g->edge);
    }
}

/* The pressure, from that of the last time on: until what is lost is 1e-5 of what flows. */
static void gas_solve(gas *g)
{
    enum { ROUNDS = 2000 };
    double brought, product;
    int round;
    gas_faces(g);
    product = gas_first(g, &brought);
    for (round = 0; round < ROUNDS && product > 1e-10 * brought; round++)
        product = gas_round(g, product);
    if (round == ROUNDS) stop(1, "the pressure was not found in %d rounds", ROUNDS);
    g->rounds += round;
    gas_slopes(g);
}

/* At the bottom, on average; at the top it is 0. */
static double gas_drop(const gas *g)
{
    double sum = 0;
    int32_t x;
    for (x = 0; x < g->wide; x++)
        sum += g->pressure[x] + 0.5 * g->inflow * g->edge / g->pass[x];
    return sum / g->wide;
}

/* The force on a grain in cell c, along x and y: the pressure on its volume, and its part of the
   drag, which with w = -e/b grad p is the first line. */
static void gas_force(const gas *g, int32_t c, double volume, const float *v, double force[2])
{
    double const each = volume / (1 - g->porosity[c]);
    int a;
    for (a = 0; a < 2; a++)
        force[a] = -each * g->slope[a][c] +
                   each * g->drag[c] * (g->solid[a][c] - (double)v[a]);
}

/* -------------------------------------------------------------------------------------------------
   >>onset
   ---------------------------------------------------------------------------------------------- */

/* C. Y. Wen, Y. H. Yu, A generalized method for predicting the minimum fluidization velocity, AIChE
   Journal 12, 1966: Re = sqrt(33.7^2 + 0.0408 Ar) - 33.7. */
static double onset_wen_yu(double d, double density)
{
    double const archimedes = d * d * d * gas_density * (density - gas_density) * 9.81 /
                              (gas_viscosity * gas_viscosity);
    return (sqrt(33.7 * 33.7 + 0.0408 * archimedes) - 33.7) * gas_viscosity / (gas_density * d);
}

/* The positive root of a U + b U^2 = c. */
static double onset_root(double a, double b, double c)
{
    return b > 0 ? (sqrt(a * a + 4 * b * c) - a) / (2 * b) : c / a;
}

/* S. Ergun 1952, at porosity e. */
static double onset_ergun(double d, double density, double e)
{
    double const gone = e * e * e;
    return onset_root(150 * (1 - e) * gas_viscosity / (gone * d * d),
                      1.75 * gas_density / (gone * d), (density - gas_density) * 9.81);
}

#endif /* FLUIDISED_BED_GAS_H */
