/* nbody_contrasts.c - error against time: nbody.h beside the methods that came before.
   SPDX-License-Identifier: MIT OR Unlicense

   What it shows: six ways to the forces of the same bodies, from chapter 3 of source 002 and from
   nbody.h, each with the number that trades error for time:

       direct         every pair
       Barnes-Hut     opening angle: 1 .. 0.2                   barnes_hut.h
       mesh           nodes along an edge: 64 .. 1024           particle_mesh.h
       P3M            spacings of the mesh within which pairs act themselves       p3m.h
       nodes alone    force nodes along an edge of a cell: 2, 4, 8   force_nodes.h
       force nodes    order: 1, 4, 8                            nbody.h, NBODY_FORCE_NODES

   It prints a table, and draws it: at the left below is best. All are in double, on one thread. The
   contrasts are short and plain texts; nbody.h has vector instructions, too. Errors do not depend
   on that, nor do terms.

   How to run it:

       make build/nbody_contrasts && build/nbody_contrasts     (from the top of the repository), or
       cc -O3 examples/nbody_contrasts/nbody_contrasts.c -o nbody_contrasts -lstb -lm
       ./nbody_contrasts -n 100000 --clumps

   What to look at: the three headers, 150 lines each; >>methods below. */

#define PROGRAM "nbody_contrasts"
#include "../common/base.h"

#define NBODY_REAL double
#define UGRID_REAL double
#define NBODY_IMPLEMENTATION
#include "../../nbody.h"
#define UGRID_IMPLEMENTATION
#include "../../ugrid.h"

#include "barnes_hut.h"
#include "force_nodes.h"
#include "p3m.h"
#include "nbody_contrasts.h"

/* -------------------------------------------------------------------------------------------------
   >>methods: one evaluation each. What does not depend on the bodies is made before.
   ---------------------------------------------------------------------------------------------- */

/* Terms: one source on one target. */
static void by_tree(scene *s, work *w)
{
    bh_build(&w->tree, s->pos, s->mass, s->n);
    bh_accelerations(&w->tree, w->number, s->acc);
    w->terms = (double)w->tree.terms;
}

static void by_mesh(scene *s, work *w)
{
    mesh_accelerations(&w->p3m.mesh, s->pos, s->mass, s->n, s->acc);
}

static void by_p3m(scene *s, work *w)
{
    p3m_accelerations(&w->p3m, s->pos, s->mass, s->n, s->acc);
    w->terms = 2 * (double)w->p3m.pairs;
}

static void by_nodes(scene *s, work *w)
{
    nodes_accelerations(&w->nodes, s->pos, s->mass, s->n, s->acc);
    w->terms = w->nodes.terms;
}

static void by_nbody(scene *s, work *w)
{
    nbody_counts counts;
    MUST(nbody, nbody_accelerations(&w->sim, &w->desc, s->pos, 0, s->mass, s->n, s->acc), "forces");
    if (w->terms > 0) return; /* not in every round: counting takes time */
    MUST(nbody, nbody_count(&w->sim, &counts), "counting");
    w->terms = (double)(counts.near_terms + counts.far_terms);
}

/* -------------------------------------------------------------------------------------------------
   >>list
   ---------------------------------------------------------------------------------------------- */

static work *add_work(scene *s, method_kind kind, double number, evaluate_fn *evaluate)
{
    work *w = &s->work[s->works++];
    if (s->works > MOST_WORKS) stop(1, "more than %d points", MOST_WORKS);
    w->kind = kind;
    w->number = number;
    w->evaluate = evaluate;
    return w;
}

/* Every method with each of its numbers. */
static void list_methods(scene *s)
{
    static double const angles[] = {1, 0.7, 0.5, 0.35, 0.25, 0.18};
    static double const reaches[] = {3, 4, 6, 8, 12};
    static int const orders[] = {1, 4, 8};
    int32_t side;
    int k;
    add_work(s, DIRECT, 0, by_nbody)->desc.method = NBODY_DIRECT;
    for (k = 0; k < 6; k++) add_work(s, BARNES_HUT, angles[k], by_tree);
    for (side = 64; side <= s->options->mesh; side *= 2)
        add_work(s, MESH, side, by_mesh)->p3m.mesh = mesh_new(side, 0);
    for (k = 0; k < 5; k++)
        add_work(s, P3M, reaches[k], by_p3m)->p3m = p3m_new(p3m_side(s, reaches[k]), reaches[k]);
    for (k = 2; k <= 8; k *= 2) add_work(s, NODES_ALONE, k, by_nodes)->nodes = nodes_new(s->n, k);
    for (k = 0; k < 3; k++) {
        work *w = add_work(s, FORCE_NODES, orders[k], by_nbody);
        w->desc.method = NBODY_FORCE_NODES;
        w->desc.order = orders[k];
    }
}

static void free_methods(scene *s)
{
    int k;
    for (k = 0; k < s->works; k++) {
        bh_free(&s->work[k].tree);
        nbody_free(&s->work[k].sim);
        p3m_free(&s->work[k].p3m);
        nodes_free(&s->work[k].nodes);
    }
}

int main(int argc, char **argv)
{
    options const o = parse(argc, argv);
    scene *s = scene_new(&o);
    list_methods(s);
    measure_all(s);
    print_table(s);
    draw(s, o.out);
    free_methods(s);
    scene_free(s);
    return 0;
}
