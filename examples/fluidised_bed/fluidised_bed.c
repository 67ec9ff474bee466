/* fluidised_bed.c - grains in a flow of gas from below: at rest, carried, with bubbles that rise.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: grains that rub (DEM) coupled to a gas by averages over cells, as in source 004
   (Kureck 2016, section 6.2.1). Glass beads of 1 mm lie in a flat box; air enters through its
   bottom.

       contacts    a list of nlist.h with a skin, whose entries keep their history (common/dem.h)
       averages    a grid of ugrid.h with cells of 3 x 3 grains, through the whole depth;
                   ugrid_cell_sums gives the porosity and the mean velocity of each cell
       gas         finds its way through the cells: one equation for the pressure
                   (fluidised_bed_gas.h)
       drag        a force on each grain, by the porosity and the slip velocity of its cell

   At a low velocity the gas seeps through the bed. Where its pressure carries the weight the bed
   becomes a fluid: that is the minimum velocity of fluidisation, which --curve measures, beside the
   formulas of Wen and Yu and of Ergun. Gas beyond that rises as bubbles.

   How to run it:

       make build/fluidised_bed && build/fluidised_bed (from the top of the repository), or
       cc -O3 examples/fluidised_bed/fluidised_bed.c -o fluidised_bed -lstb -lm
       ./fluidised_bed --curve --wide 20 --deep 10 --high 20

   What to look at: >>average and >>step below, 80 lines; >>drag and >>pressure in
   fluidised_bed_gas.h. Grains are float, the gas double. */

#define PROGRAM "fluidised_bed"
#include "../common/base.h"

#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"
#define LBVH_IMPLEMENTATION
#include "../../lbvh.h"
#define NLIST_IMPLEMENTATION
#include "../../nlist.h"

#include "fluidised_bed_gas.h"
#include "fluidised_bed.h"

/* -------------------------------------------------------------------------------------------------
   >>average: from grains to cells
   ---------------------------------------------------------------------------------------------- */

/* The gas that the grains leave room for, as they lie. */
static void average(bed *b)
{
    const dem_system *d = &b->grains;
    int32_t i;
    int a;
    for (i = 0; i < d->n; i++) {
        float *own = b->averaged + 3 * (size_t)i;
        own[0] = (float)b->volume;
        for (a = 0; a < 2; a++) own[1 + a] = own[0] * d->vel[4 * (size_t)i + (size_t)a];
    }
    MUST(ugrid, ugrid_build(&b->coarse, &b->gas_desc, d->pos, DEM_STRIDE, d->n), "the gas cells");
    MUST(ugrid, ugrid_cell_sums(&b->coarse, b->averaged, 3, b->cell_sums), "the averages");
    for (i = 0; i < d->n; i++)
        b->cell[i] = ugrid_cell_at(&b->coarse, d->pos + 4 * (size_t)i);
    gas_fill(&b->air, b->cell_sums);
    gas_solve(&b->air);
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

/* The list serves until a grain has moved by half of the skin. */
static void collect(bed *b)
{
    const dem_system *d = &b->grains;
    int32_t moved;
    MUST(nlist, nlist_moved(&b->pairs, d->pos, DEM_STRIDE, &moved), "the skin");
    if (!moved) return;
    MUST(ugrid, ugrid_build(&b->near, &b->near_desc, d->pos, DEM_STRIDE, d->n), "the grid");
    MUST(nlist, nlist_build_ugrid(&b->pairs, &b->desc, &b->near, d->pos, DEM_STRIDE, d->n),
         "the list");
    b->builds++;
}

/* Grains at grains, at the walls, and in the gas. */
static void push(bed *b)
{
    nlist_sums how = {DEM_SUMS, NLIST_AUTO, 0};
    const dem_system *d = &b->grains;
    double force[2];
    int32_t i;
    memset(b->sums, 0, (size_t)d->n * DEM_SUMS * sizeof *b->sums);
    MUST(nlist, nlist_sum(&b->pairs, &how, dem_spheres_fn, &b->grains, b->sums), "the forces");
    for (i = 0; i < d->n; i++) {
        float *sum = b->sums + DEM_SUMS * (size_t)i;
        dem_planes(d, i, sum);
        gas_force(&b->air, b->cell[i], b->volume, d->vel + 4 * (size_t)i, force);
        sum[0] += (float)force[0];
        sum[1] += (float)force[1];
    }
}

static void step(bed *b)
{
    int32_t i;
    if (b->step % GAS_EVERY == 0) average(b);
    collect(b);
    push(b);
    for (i = 0; i < b->grains.n; i++) dem_move(&b->grains, i, b->sums + DEM_SUMS * (size_t)i);
    b->step++;
}

#include "fluidised_bed_run.h"

int main(int argc, char **argv)
{
    bed_options const o = parse(argc, argv);
    bed *b = bed_new(&o);
    print_bed(b);
    if (o.curve) run_curve(b);
    else run_bubbles(b);
    bed_free(b);
    return 0;
}
