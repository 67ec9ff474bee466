/* orbits_run.h - the table of orbits.c, which includes this: errors by step and by tolerance.
   SPDX-License-Identifier: MIT OR Unlicense */

enum { LEAPFROG, RK4, ADAPTIVE, ORBITS_LINES = 6 };

static const char *const integrator_name[] = {"leapfrog", "RK4", "adaptive"};

/* Runs to the end with steps of the period / number, or with a tolerance; returns the error. */
static double orbits_run(orbits *o, int integrator, double number, motion *m)
{
    double const end = 2 * PI * o->periods;
    double h = 2 * PI / number;
    int64_t step, steps = (int64_t)(number * o->periods + 0.5);
    *m = motion_new(o->n, forces, o);
    start(o, m);
    if (integrator == ADAPTIVE)
        for (h = 0.01; m->time < end;) adaptive_step(m, &h, end, number);
    else
        for (step = 0; step < steps; step++)
            if (integrator == LEAPFROG) leapfrog_step(m, h);
            else rk4_step(m, h);
    return error_of(o, m);
}

/* Order: from the error of the line before, with steps twice as long. Of adaptive steps: how the
   error falls with the evaluations. */
static void orbits_lines(orbits *o, int integrator, progress *bar)
{
    double before = 0, cost = 0;
    int k;
    for (k = 0; k < ORBITS_LINES; k++) {
        double const number = integrator == ADAPTIVE ? pow(10, -4 - k) : 100 * pow(2, k);
        motion m;
        double const error = orbits_run(o, integrator, number, &m);
        progress_clear(bar);
        printf("%-9s %9.4g %9lld %8lld %10.2e", integrator_name[integrator], number,
               (long long)m.evaluations, (long long)m.rejected, error);
        if (k > 0 && error > 0 && before > 0)
            printf(" %6.2f", log(before / error) / log((double)m.evaluations / cost));
        printf("\n");
        fflush(stdout);
        progress_show(bar, integrator * ORBITS_LINES + k + 1, 3 * ORBITS_LINES, "");
        before = error;
        cost = (double)m.evaluations;
        motion_free(&m);
    }
}

static orbits orbits_read(int argc, char **argv)
{
    const char *name = "pair";
    orbits o;
    option_line table[6];
    memset(&o, 0, sizeof o);
    o.n = 0;
    o.seed = 1;
    o.eccentricity = -1;
    o.periods = 2;
    {
        option_line const lines[6] = {
            TEXT("--case", "NAME", &name, "pair (default), field, centre, halo, cluster"),
            DOUBLE("--eccentricity", "E", &o.eccentricity, 0, 0.99,
                   "of the ellipse (default 0.5; cluster 0.9)"),
            DOUBLE("--periods", "P", &o.periods, 0.01, 1e4, "how long (default 2)"),
            INT("-n", "N", &o.n, 2, 100000, "bodies in the halo (default 2), the cluster (200)"),
            INT("--seed", "N", &o.seed, 0, INT_MAX, "of bodies in the halo (default 1)"),
            OPTIONS_END};
        memcpy(table, lines, sizeof table);
    }
    options_read(argc, argv, table, NULL, "Time steps beside exact orbits.", "--case field");
    o.which = option_find(cases, "--case", name);
    if (o.n == 0) o.n = o.which == CLUSTER ? 200 : 2;
    if (o.eccentricity < 0) o.eccentricity = o.which == CLUSTER ? 0.9 : 0.5;
    return o;
}

int main(int argc, char **argv)
{
    orbits o = orbits_read(argc, argv);
    progress bar = progress_begin("run");
    int32_t i;
    int integrator;
    if (o.which == CENTRE) o.n = 1;
    else if (o.which < HALO) o.n = 2;
    o.mass = (double *)zeros((size_t)o.n, sizeof(double));
    for (i = 0; i < o.n; i++) o.mass[i] = o.which == HALO ? 1.0 / o.n : i ? 0.25 : 0.75;
    if (o.which == HALO) o.desc.softening = 0.1;
    if (o.which == CLUSTER) {
        cluster_table(&o);
        nbody_free(&o.sim);
        free(o.mass);
        return 0;
    }
    printf("%-9s %9s %9s %8s %10s %6s\n", "", "steps or", "evalua-", "", "", "");
    printf("%-9s %9s %9s %8s %10s %6s\n", "", "tolerance", "tions", "rejected", "error", "order");
    for (integrator = LEAPFROG; integrator <= ADAPTIVE; integrator++)
        orbits_lines(&o, integrator, &bar);
    nbody_free(&o.sim);
    free(o.mass);
    return 0;
}
