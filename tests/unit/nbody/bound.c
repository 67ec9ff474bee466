/* bound.c - a part of test_nbody.c: Kalms equation 9. A source that is misplaced by a share e of
   its distance changes the force by at most 1 / (1 - e)^2 - 1 of it. Measured in trees, for every
   body that a virtual particle represents to every body on which it acts; and how near the largest
   comes to the bound.

   Why it holds for vectors: the derivative of d / |d|^3 has the norm 2 / |d|^3, and on the way of
   the source |d| falls to (1 - t) |d| at least: the integral of 2 / (1 - t)^3 over t = 0 .. e is
   the bound. It is reached where the source moves straight towards the target.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { BOUND_LEVELS = 5, BOUND_BODIES = 1200 };

static double bound_of(double e) { return 1 / ((1 - e) * (1 - e)) - 1; }

typedef struct centre { double m, x, y; } centre;

/* What was measured: the largest shares of the distance by level, errors, and errors over their
   bounds; of the body at hand the sum of all bounds. */
typedef struct measured {
    double share[BOUND_LEVELS], error, sharpness, allowed;
    int64_t pairs;
} measured;

/* Pairs in opposite corners of sub-cells of level 3, a heavy and a light body: there mass centres
   are far from the light ones. */
static void make_corners(int subcells, real *pos, real *mass)
{
    int const side = 8 * subcells;
    int32_t i;
    for (i = 0; i < BOUND_BODIES; i += 2) {
        int const x = roll(side), y = roll(side), flip = roll(2), k = roll(2);
        int b;
        for (b = 0; b < 2; b++) {
            int const right = b ^ k, up = b ^ k ^ flip;
            pos[2 * (i + b)] = (real)((x + (right ? 0.999 : 0.001)) / side);
            pos[2 * (i + b) + 1] = (real)((y + (up ? 0.999 : 0.001)) / side);
            mass[i + b] = b ? 1 : 1000;
        }
    }
}

/* Column or row of the sub-cell of a cell in which a body lies. */
static int sub_of(const nbody *sim, const nbody_cell *cell, int axis, double x)
{
    double const side = sim->frame->edge / (double)(1 << cell->level),
                 corner = sim->frame->origin[axis] + side * (axis ? cell->y : cell->x);
    int const k = (int)((x - corner) / side * sim->desc.subcells);
    CHECK(k >= 0 && k < sim->desc.subcells);
    return k;
}

/* Mass centres of the sub-cells of a cell, by a sum of their own; they must be its sources. */
static void centres_of(const nbody *sim, int32_t c, centre *of)
{
    const nbody_cell *cell = &sim->cell[c];
    int const s = sim->desc.subcells;
    int32_t k, made = 0;
    memset(of, 0, sizeof *of * (size_t)(s * s));
    for (k = cell->first; k < cell->first + cell->count; k++) {
        double const x = (double)sim->x[k], y = (double)sim->y[k], m = (double)sim->m[k];
        centre *at = &of[sub_of(sim, cell, 0, x) + s * sub_of(sim, cell, 1, y)];
        at->m += m;
        at->x += m * x;
        at->y += m * y;
    }
    for (k = 0; k < s * s; k++) {
        int32_t j;
        int found = 0;
        if (of[k].m == 0) continue;
        of[k].x /= of[k].m;
        of[k].y /= of[k].m;
        made++;
        for (j = c * sim->per_cell; j < c * sim->per_cell + sim->made[c]; j++)
            found += fabs((double)sim->vx[j] - of[k].x) < 1e-6 &&
                     fabs((double)sim->vy[j] - of[k].y) < 1e-6;
        CHECK(found == 1);
    }
    CHECK(made == sim->made[c]);
}

/* The bodies of a cell on one body, from where they are and from their mass centres. */
static void measure_cell(const nbody *sim, int32_t c, const centre *of, int32_t target, measured *m)
{
    const nbody_cell *cell = &sim->cell[c];
    int const s = sim->desc.subcells;
    int32_t k;
    for (k = cell->first; k < cell->first + cell->count; k++) {
        double const x = (double)sim->x[k], y = (double)sim->y[k];
        const centre *at = &of[sub_of(sim, cell, 0, x) + s * sub_of(sim, cell, 1, y)];
        double const dx = x - (double)sim->x[target], dy = y - (double)sim->y[target],
                     d = sqrt(dx * dx + dy * dy), moved = hypot(at->x - x, at->y - y),
                     vx = at->x - (double)sim->x[target], vy = at->y - (double)sim->y[target],
                     v = sqrt(vx * vx + vy * vy), share = moved / d,
                     error = hypot(vx / (v * v * v) - dx / (d * d * d),
                                   vy / (v * v * v) - dy / (d * d * d)) * d * d;
        CHECK_BELOW(error, bound_of(share) * (1 + 1e-9) + 1e-12);
        if (share > m->share[cell->level]) m->share[cell->level] = share;
        if (error > m->error) m->error = error;
        if (share > 0.05 && error / bound_of(share) > m->sharpness)
            m->sharpness = error / bound_of(share);
        m->allowed += (double)sim->m[k] / (d * d) * bound_of(share);
        m->pairs++;
    }
}

/* Everything that acts from afar on one body, by its leaf and the leaf's ancestors. */
static void measure_target(const nbody *sim, int32_t leaf, int32_t target, measured *m)
{
    centre of[64];
    int32_t c;
    m->allowed = 0;
    for (c = leaf; c >= 0; c = sim->cell[c].parent) {
        nbody_far far_cells = nbody_far_of(sim, c);
        while (nbody_next_far(&far_cells)) {
            if (sim->cell[far_cells.cell].child < 0) continue; /* its bodies act themselves */
            centres_of(sim, far_cells.cell, of);
            measure_cell(sim, far_cells.cell, of, target, m);
        }
    }
}

/* The error of a whole force, as a share of what the bounds of its terms allow. */
static double check_force(const nbody *sim, const real *acc, int32_t target, double allowed)
{
    double sum[2] = {0, 0}, scale = 0, error;
    int32_t k;
    for (k = 0; k < sim->n; k++) {
        double const x = (double)sim->x[k] - (double)sim->x[target],
                     y = (double)sim->y[k] - (double)sim->y[target], d = hypot(x, y);
        if (d == 0) continue;
        sum[0] += (double)sim->m[k] * x / (d * d * d);
        sum[1] += (double)sim->m[k] * y / (d * d * d);
        scale += (double)sim->m[k] / (d * d);
    }
    for (k = 0; k < 2; k++) /* in the units of the arrays */
        sum[k] -= (double)acc[2 * sim->id[target] + k] * sim->frame->length * sim->frame->length /
                  sim->frame->mass;
    error = hypot(sum[0], sum[1]);
    allowed += rounding() * scale;
    CHECK_BELOW(error, allowed);
    return error / allowed;
}

/* Far cells are a cell's side away at least, and sub-cells have a diagonal of sqrt(2) / subcells of
   it: that is the largest share, on every level. How near it comes, with the corners taken: shares
   to 1 %, errors of terms to their own bounds to 0.1 %. The bound of the largest share is reached
   to a part only: a diagonal does not point straight at a body that is a side away. And in whole
   forces a mass centre cancels the errors of first order of its bodies. */
static void test_displaced_sources(void **state)
{
    static const struct { int subcells; double reached; } cases[] = {{2, 0.14}, {4, 0.5}, {8, 0.6}};
    int k;
    (void)state;
    dice = wl_seed(61);
    for (k = 0; k < COUNT_OF(cases); k++) {
        static real pos[2 * BOUND_BODIES], mass[BOUND_BODIES], acc[2 * BOUND_BODIES];
        double const most = sqrt(2.0) / cases[k].subcells;
        double cancelled = 0;
        nbody sim = {0};
        nbody_desc d;
        measured m;
        int32_t c;
        memset(&d, 0, sizeof d);
        memset(&m, 0, sizeof m);
        make_corners(cases[k].subcells, pos, mass);
        d.method = NBODY_VIRTUAL_PARTICLES;
        d.levels = BOUND_LEVELS;
        d.subcells = cases[k].subcells;
        d.size = 1;
        CHECK_RESULT(nbody_accelerations(&sim, &d, pos, 0, mass, BOUND_BODIES, acc), NBODY_OK);
        c = sim.frame->level_first[BOUND_LEVELS - 1];
        for (; c < sim.frame->cells; c += 5) {
            int32_t const target = sim.cell[c].first;
            double part;
            measure_target(&sim, c, target, &m);
            part = check_force(&sim, acc, target, m.allowed);
            if (part > cancelled) cancelled = part;
        }
        CHECK(m.pairs > 40000);
        CHECK_BELOW(m.share[2], most * (1 + 1e-6));
        CHECK_BELOW(m.share[3], most * (1 + 1e-6));
        CHECK(m.share[3] > 0.99 * most && m.share[2] > 0.5 * most);
        CHECK(m.sharpness > 0.999);
        CHECK_BELOW(m.error, bound_of(most));
        CHECK(m.error > cases[k].reached * bound_of(most));
        CHECK(cancelled > 0.015 && cancelled < 0.2);
        nbody_free(&sim);
    }
}
