/* orbits_cluster.h - the case `cluster` of orbits.c, which includes this: a binary of large
   eccentricity in a cluster, where few bodies need short steps (Kalms, section 3.1.1).
   SPDX-License-Identifier: MIT OR Unlicense

   Each line: an integrator, how many forces on one body it took, and the largest error of the
   energy at the end of a 64th of a unit of time. */

#include "../common/progress.h"

enum { CLUSTER_LINES = 9 };

typedef struct cluster {
    progress bar;
    int lines;                  /* that are printed */
    nbody_bodies bodies;
    nbody_desc desc;
    double *potential, first;   /* [n]; the energy at the start */
} cluster;

/* A turning disc of mass 1; the first two bodies are the binary, of mass 0.1, at its apocentre. */
static void cluster_start(const orbits *o, cluster *c)
{
    double const axis = 0.02, heavy = 0.1, e = o->eccentricity, apart = axis * (1 + e),
                 speed = sqrt(heavy / axis * (1 - e) / (1 + e));
    double *pos = c->bodies.pos, *vel = c->bodies.vel;
    uint64_t r = random_seed(o->seed);
    int32_t i;
    for (i = 0; i < o->n; i++) {
        double const radius = sqrt(random_double(&r)), angle = 2 * PI * random_double(&r);
        pos[2 * i] = radius * cos(angle);
        pos[2 * i + 1] = radius * sin(angle);
        vel[2 * i] = -0.6 * pos[2 * i + 1];
        vel[2 * i + 1] = 0.6 * pos[2 * i];
        o->mass[i] = i < 2 ? heavy / 2 : 1.0 / o->n;
    }
    for (i = 0; i < 2; i++) {
        double const side = i ? 0.5 : -0.5;
        pos[2 * i] = 0.3 + side * apart;
        pos[2 * i + 1] = 0.2;
        vel[2 * i] = -0.1;
        vel[2 * i + 1] = 0.1 + side * speed;
    }
    c->bodies.fresh = 0;
}

static double cluster_energy(orbits *o, cluster *c)
{
    nbody_desc direct = c->desc;
    nbody_energies e;
    direct.method = NBODY_DIRECT;
    MUST(nbody, nbody_fields(&o->sim, &direct, c->bodies.pos, 0, o->mass, o->n, NULL,
                             c->potential), "the energy");
    MUST(nbody, nbody_energy(&c->bodies, c->potential, &e), "the energy");
    return e.kinetic + e.potential;
}

/* One line: nbody_step with this many steps in a 64th, or block steps with this accuracy. */
static void cluster_line(orbits *o, cluster *c, const char *name, int blocked, double number)
{
    double const long_step = 1.0 / 64;
    nbody_integrator const by = strcmp(name, "Euler") == 0 ? NBODY_EULER : NBODY_LEAPFROG;
    nbody_blocks blocks = {0};
    nbody_blocks_desc how = {0, 0};
    double worst = 0;
    int64_t forces = 0;
    int k, s, deepest = 0, steps = (int)ceil(o->periods * 4);
    cluster_start(o, c);
    how.accuracy = number;
    c->first = cluster_energy(o, c);
    for (k = 0; k < steps; k++) {
        if (blocked) {
            MUST(nbody, nbody_blocks_step(&blocks, &how, &o->sim, &c->desc, &c->bodies, long_step),
                 "block steps");
            forces += blocks.forces;
            if (blocks.level[0] > deepest) deepest = blocks.level[0];
        }
        for (s = 0; !blocked && s < (int)number; s++)
            MUST(nbody, nbody_step(&o->sim, &c->desc, &c->bodies, long_step / number, by),
                 "a step");
        if (!blocked) forces += (int64_t)number * o->n;
        worst = fmax(worst, fabs(cluster_energy(o, c) / c->first - 1));
        progress_show(&c->bar, c->lines * steps + k + 1, CLUSTER_LINES * steps, "");
    }
    c->lines++;
    progress_clear(&c->bar);
    printf("%-9s %9g %12lld %10.2e", name, number, (long long)forces, worst);
    if (blocked) printf("   steps of the binary: down to 1/%d", 1 << deepest);
    printf("\n");
    fflush(stdout);
    nbody_blocks_free(&blocks);
}

static void cluster_table(orbits *o)
{
    static const double steps[] = {64, 512, 4096}, accuracies[] = {0.1, 0.03, 0.01};
    size_t const n = (size_t)o->n;
    cluster c;
    int k;
    memset(&c, 0, sizeof c);
    c.bar = progress_begin("step");
    c.bodies.pos = (double *)zeros(2 * n, sizeof(double));
    c.bodies.vel = (double *)zeros(2 * n, sizeof(double));
    c.bodies.acc = (double *)zeros(2 * n, sizeof(double));
    c.potential = (double *)zeros(n, sizeof(double));
    c.bodies.mass = o->mass;
    c.bodies.n = o->n;
    c.desc.softening = 2e-4;
    printf("%-9s %9s %12s %10s\n", "", "steps or", "forces on", "error of");
    printf("%-9s %9s %12s %10s\n", "", "accuracy", "one body", "energy");
    for (k = 0; k < 3; k++) cluster_line(o, &c, "Euler", 0, steps[k]);
    for (k = 0; k < 3; k++) cluster_line(o, &c, "leapfrog", 0, steps[k]);
    for (k = 0; k < 3; k++) cluster_line(o, &c, "blocks", 1, accuracies[k]);
    free(c.bodies.pos);
    free(c.bodies.vel);
    free(c.bodies.acc);
    free(c.potential);
}
