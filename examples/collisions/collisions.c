/* collisions.c - a fluid by multiparticle collision dynamics: vortices decay, and tell the
   viscosity.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: sums over the particles of each cell, by ugrid.h. A step moves the particles,
   shifts the grid by a random vector, sums momentum and mass of every cell, and rotates velocities
   about the mean of their cell (equations: collisions.h). The sums come in three ways, which are
   those that source 003 writes about, for this very method:

       direct   each particle adds to its cell; on a GPU by atomics. No grid is built
       lists    UGRID_LIST: one thread follows the linked list of a cell, without atomics
       header   UGRID_COUNT and ugrid_cell_sums

           cell:     0           1           2
           direct    s[cell of particle] += m v                     scattered writes
           lists     head -> 5 -> 2 -> 0                            scattered reads
           header    start: | 0 2 5 | 1 4 | 3 |  (order)            one cell after the other

   How to run it:

       make build/collisions && build/collisions       (from the top of the repository), or
       cc -O3 examples/collisions/collisions.c -o collisions -lstb -lm
       ./collisions --dim 3 --size 32 --sums lists --time

   What to look at: >>sums and >>step below; collisions.h, >>model. All is in double. */

#define PROGRAM "collisions"
#include "../common/base.h"

#ifndef UGRID_REAL
#define UGRID_REAL double
#endif
#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"

#include "collisions.h"
#include "collisions_draw.h"

/* -------------------------------------------------------------------------------------------------
   >>sums: momentum and mass of every cell
   ---------------------------------------------------------------------------------------------- */

/* The box of the grid is shifted; it is periodic, so the particles stay where they are. */
static ugrid_desc shifted_cells(const mpc_model *model, ugrid_method method)
{
    ugrid_desc desc;
    int a;
    memset(&desc, 0, sizeof desc);
    desc.dim = model->dim;
    desc.cell = 1;
    desc.method = method;
    for (a = 0; a < model->dim; a++) {
        desc.periodic[a] = 1;
        desc.min[a] = -mpc_shift(model, a);
        desc.max[a] = (mpc_real)model->size - mpc_shift(model, a);
    }
    return desc;
}

/* n = 0: for the numbers of cells alone. */
static void build(scene *s, ugrid_method method, int32_t n)
{
    ugrid_desc const desc = shifted_cells(&s->model, method);
    MUST(ugrid, ugrid_build(&s->grid, &desc, s->x, 0, n), "the grid");
}

static const mpc_real *position(const scene *s, int32_t i)
{
    return s->x + (size_t)s->model.dim * (size_t)i;
}

static void add_particle(scene *s, int32_t i, int32_t cell)
{
    size_t const width = (size_t)s->model.dim + 1;
    mpc_real *sum = s->sums + width * (size_t)cell;
    const mpc_real *v = s->v + width * (size_t)i;
    size_t k;
    for (k = 0; k < width; k++) sum[k] += v[k];
}

static void clear_sums(scene *s)
{
    memset(s->sums, 0, ((size_t)s->model.dim + 1) * (size_t)s->cells * sizeof *s->sums);
}

static void sum_direct(scene *s)
{
    int32_t i;
    clear_sums(s);
    for (i = 0; i < s->n; i++) add_particle(s, i, ugrid_cell_at(&s->grid, position(s, i)));
}

static void sum_lists(scene *s)
{
    int32_t cell, i;
    clear_sums(s);
    for (cell = 0; cell < s->cells; cell++)
        for (i = s->grid.head[cell]; i >= 0; i = s->grid.next[i]) add_particle(s, i, cell);
}

static void sum_header(scene *s)
{
    MUST(ugrid, ugrid_cell_sums(&s->grid, s->v, s->model.dim + 1, s->sums), "sums of cells");
}

/* What each way needs before its sums, and the sums. */
static void prepare_sums(scene *s, int way)
{
    static const ugrid_method method[SUM_WAYS] = {UGRID_LIST, UGRID_LIST, UGRID_COUNT};
    build(s, method[way], way == SUM_DIRECT ? 0 : s->n);
}

static void sum_cells(scene *s, int way)
{
    static void (*const sum[SUM_WAYS])(scene *) = {sum_direct, sum_lists, sum_header};
    sum[way](s);
}

/* -------------------------------------------------------------------------------------------------
   >>step
   ---------------------------------------------------------------------------------------------- */

static void stream(scene *s)
{
    size_t const dim = (size_t)s->model.dim;
    size_t i;
    for (i = 0; i < (size_t)s->n; i++)
        mpc_stream(&s->model, s->v + (dim + 1) * i, s->x + dim * i);
}

static void collide(scene *s)
{
    size_t const width = (size_t)s->model.dim + 1;
    int32_t cell, i;
    for (cell = 0; cell < s->cells; cell++)
        mpc_prepare(&s->model, cell, s->sums + width * (size_t)cell, &s->turn[cell]);
    for (i = 0; i < s->n; i++)
        mpc_collide(&s->model, &s->turn[ugrid_cell_at(&s->grid, position(s, i))],
                    s->v + width * (size_t)i);
}

#ifdef __CUDACC__ /* collisions.cu has what is above, to check its own against it */
#include "collisions_run.h"
#else

/* Particles of a cell come to lie side by side in memory, until they have flown apart. */
static void order_particles(scene *s)
{
    size_t const dim = (size_t)s->model.dim;
    mpc_real *const x = s->x, *const v = s->v;
    build(s, UGRID_COUNT, s->n);
    MUST(ugrid, ugrid_gather(&s->grid, x, dim * sizeof *x, s->spare_x), "sorting");
    MUST(ugrid, ugrid_gather(&s->grid, v, (dim + 1) * sizeof *v, s->spare_v), "sorting");
    s->x = s->spare_x;
    s->v = s->spare_v;
    s->spare_x = x;
    s->spare_v = v;
}

static void step(scene *s)
{
    int32_t const order = s->options->order;
    if (order && s->model.step % order == 0) order_particles(s);
    stream(s);
    prepare_sums(s, s->options->sums);
    sum_cells(s, s->options->sums);
    collide(s);
    s->model.step++;
}

#include "collisions_run.h"

static void advance_serial(void *user, int64_t steps)
{
    while (steps-- > 0) step((scene *)user);
}

int main(int argc, char **argv)
{
    mpc_options const o = parse(argc, argv);
    scene *s = scene_new(&o);
    int status;
    run(s, advance_serial, s);
    if (o.time) time_sums(s);
    status = o.check ? check_sums(s) : 0;
    scene_free(s);
    return status;
}

#endif
