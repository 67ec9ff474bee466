/* peer_fmm2d.c - nbody.h beside fmm2d (github.com/flatironinstitute/fmm2d): law 1 / d, one thread,
   equal error.
   Optional: needs fmm2d's shared library, built as its own page says. Nothing of it is part of this
   repository.

       cc -std=c99 -O3 -march=native -ffp-contract=off -DNBODY_REAL=double -I. \
           tests/bench/peer_fmm2d.c -o build/bench/peer_fmm2d -lm -ldl
       build/bench/peer_fmm2d fmm2d/lib/libfmm2d.so 10000 100000

   For each input and error: the smallest order of ours and the largest eps of theirs whose error is
   not above it, and the median of the ratios of their CPU times, taken in turn. The error is the
   norm of the difference to direct sums over the norm of those, over a sample of bodies: of the
   forces, and where potentials are asked for, of the worse of the two.

   SPDX-License-Identifier: MIT OR Unlicense */

#define _POSIX_C_SOURCE 200809L
#define NBODY_STATIC
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "tests/bench/bench.h"
#include "tests/common/workloads.h"

#include <dlfcn.h>

/* rfmm2d of fmm2d: every argument by reference, all numbers double. */
typedef void fmm2d(const int *densities, const double *eps, const int *n, const double *pos,
                   const int *if_charge, const double *charge, const int *if_dipole,
                   const double *dipole, const double *dipole_direction, int *periodic,
                   const int *wanted, double *potential, double *gradient, double *hessian,
                   const int *targets, const double *target, const int *wanted_there,
                   double *potential_there, double *gradient_there, double *hessian_there,
                   int *failed);

enum { SAMPLES = 300, RUNS = 5 };

static fmm2d *theirs;

/* ---- inputs: positions in the unit square, or around 0 ---- */

static double uniform(wl_random *r) { return ((double)wl_u(r) + (double)wl_u(r) / 16777216); }

static double gaussian(wl_random *r)
{
    double const radius = sqrt(-2 * log(1 - uniform(r)));
    return radius * cos(6.283185307179586 * uniform(r));
}

static void fill_uniform(int32_t n, wl_random *r, double *pos)
{
    int32_t k;
    for (k = 0; k < 2 * n; k++) pos[k] = uniform(r);
}

/* 20 of them, as wide as 1e-3 to 1e-1. */
static void fill_gaussians(int32_t n, wl_random *r, double *pos)
{
    double centre[20][2], width[20];
    int32_t k;
    for (k = 0; k < 20; k++) {
        centre[k][0] = uniform(r);
        centre[k][1] = uniform(r);
        width[k] = pow(10, -3 + 2 * uniform(r));
    }
    for (k = 0; k < n; k++) {
        uint32_t const g = wl_below(r, 20);
        pos[2 * k] = centre[g][0] + width[g] * gaussian(r);
        pos[2 * k + 1] = centre[g][1] + width[g] * gaussian(r);
    }
}

/* A Plummer disc: of the mass, r^2 / (1 + r^2) is within r. */
static void fill_plummer(int32_t n, wl_random *r, double *pos)
{
    int32_t k;
    for (k = 0; k < n; k++) {
        double const share = 0.999 * uniform(r), radius = sqrt(share / (1 - share)),
                     angle = 6.283185307179586 * uniform(r);
        pos[2 * k] = radius * cos(angle);
        pos[2 * k + 1] = radius * sin(angle);
    }
}

typedef struct input {
    const char *name;
    void (*fill)(int32_t n, wl_random *r, double *pos);
} input;

static const input inputs[] = {
    {"uniform", fill_uniform}, {"20 Gaussians", fill_gaussians}, {"Plummer disc", fill_plummer}};

/* ---- one problem, solved by both ---- */

typedef struct problem {
    int32_t n;
    double *pos, *charge, *potential, *gradient;    /* theirs */
    nbody_real *at, *acc, *phi;                     /* ours */
    int32_t sample[SAMPLES];
    double exact[SAMPLES][3];                       /* force, potential */
    nbody sim;
} problem;

static void add_exact(const problem *p, int32_t i, double exact[3])
{
    int32_t j;
    exact[0] = exact[1] = exact[2] = 0;
    for (j = 0; j < p->n; j++) {
        double const dx = p->pos[2 * j] - p->pos[2 * i], dy = p->pos[2 * j + 1] - p->pos[2 * i + 1],
                     d2 = dx * dx + dy * dy;
        if (!(d2 > 0)) continue;
        exact[0] += dx / d2;
        exact[1] += dy / d2;
        exact[2] += log(d2) / 2;
    }
}

static problem new_problem(const input *in, int32_t n)
{
    problem p;
    wl_random r = wl_seed(1);
    size_t const count = (size_t)n;
    int32_t k;
    memset(&p, 0, sizeof p);
    p.n = n;
    p.pos = (double *)bench_alloc(2 * count * sizeof(double));
    p.charge = (double *)bench_alloc(count * sizeof(double));
    p.potential = (double *)bench_alloc(count * sizeof(double));
    p.gradient = (double *)bench_alloc(2 * count * sizeof(double));
    p.at = (nbody_real *)bench_alloc(2 * count * sizeof(nbody_real));
    p.acc = (nbody_real *)bench_alloc(2 * count * sizeof(nbody_real));
    p.phi = (nbody_real *)bench_alloc(count * sizeof(nbody_real));
    in->fill(n, &r, p.pos);
    for (k = 0; k < 2 * n; k++) p.pos[k] = (double)(p.at[k] = (nbody_real)p.pos[k]);
    for (k = 0; k < n; k++) p.charge[k] = 1;
    for (k = 0; k < SAMPLES; k++) {
        p.sample[k] = (int32_t)wl_below(&r, (uint32_t)n);
        add_exact(&p, p.sample[k], p.exact[k]);
    }
    return p;
}

static void free_problem(problem *p)
{
    nbody_free(&p->sim);
    free(p->pos);
    free(p->charge);
    free(p->potential);
    free(p->gradient);
    free(p->at);
    free(p->acc);
    free(p->phi);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double solve_ours(problem *p, int order, int potentials)
{
    double const start = now_ms();
    nbody_desc desc;
    nbody_result result;
    memset(&desc, 0, sizeof desc);
    desc.method = NBODY_FORCE_NODES;
    desc.law = NBODY_INVERSE;
    desc.order = order;
    result = nbody_fields(&p->sim, &desc, p->at, 0, NULL, p->n, p->acc, potentials ? p->phi : NULL);
    if (result == NBODY_OK) return now_ms() - start;
    puts(nbody_result_text(result));
    exit(1);
}

static double solve_theirs(problem *p, double eps, int potentials)
{
    double const start = now_ms();
    int const one = 1, none = 0, wanted = 2; /* 1: potentials, 2: and forces */
    int periodic = 0, failed = 0;
    double unused[8] = {0};
    (void)potentials; /* it has no forces without potentials */
    theirs(&one, &eps, &p->n, p->pos, &one, p->charge, &none, unused, unused, &periodic, &wanted,
           p->potential, p->gradient, unused, &none, unused, &none, unused, unused, unused,
           &failed);
    if (!failed) return now_ms() - start;
    puts("fmm2d failed");
    exit(1);
}

/* ---- errors ---- */

static double field_of(const problem *p, int ours, int32_t i, int part)
{
    if (part == 2) return ours ? (double)p->phi[i] : p->potential[i];
    return ours ? (double)p->acc[2 * i + part] : -p->gradient[2 * i + part];
}

static double error_of(const problem *p, int ours, int potentials)
{
    double wrong[2] = {0, 0}, all[2] = {0, 0}, force, potential;
    int k, part;
    for (k = 0; k < SAMPLES; k++)
        for (part = 0; part < 3; part++) {
            double const exact = p->exact[k][part],
                         off = field_of(p, ours, p->sample[k], part) - exact;
            wrong[part == 2] += off * off;
            all[part == 2] += exact * exact;
        }
    force = sqrt(wrong[0] / all[0]);
    potential = sqrt(wrong[1] / all[1]);
    return potentials && !(potential <= force) ? potential : force;
}

/* Steps of accuracy: orders 2, 3 .. of ours, eps 10^-1, 10^-1.5 .. of theirs. */
static double solve(problem *p, int ours, int step, int potentials)
{
    return ours ? solve_ours(p, step + 2, potentials)
                : solve_theirs(p, pow(10, -1 - 0.5 * step), potentials);
}

/* The first step from `from` on whose error is not above `error`; -1: none. */
static int step_for(problem *p, int ours, int from, int potentials, double error)
{
    int const end = ours ? NBODY_MAX_ORDER - 1 : 26;
    int step;
    for (step = from; step < end; step++) {
        solve(p, ours, step, potentials);
        if (error_of(p, ours, potentials) <= error) return step;
    }
    return -1;
}

static int by_size(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(problem *p, const char *name, int potentials, double error, int step[2])
{
    double ratio[RUNS], ours[RUNS], other[RUNS];
    int k, which;
    for (which = 0; which < 2; which++)
        if (step[which] >= 0) step[which] = step_for(p, which, step[which], potentials, error);
    printf("%-13s %8d %-10s %7.0e  ", name, (int)p->n, potentials ? "potentials" : "forces", error);
    if (step[0] < 0 || step[1] < 0) {
        printf("%s: not reached\n", step[1] < 0 ? "ours" : "fmm2d");
        return;
    }
    for (k = 0; k < RUNS; k++) {
        ours[k] = solve(p, 1, step[1], potentials);
        other[k] = solve(p, 0, step[0], potentials);
        ratio[k] = ours[k] / other[k];
    }
    qsort(ratio, RUNS, sizeof *ratio, by_size);
    qsort(ours, RUNS, sizeof *ours, by_size);
    qsort(other, RUNS, sizeof *other, by_size);
    printf("order %2d %9.2f ms %8.1e   eps %7.1e %9.2f ms %8.1e   %6.3f\n", step[1] + 2,
           ours[RUNS / 2], error_of(p, 1, potentials), pow(10, -1 - 0.5 * step[0]), other[RUNS / 2],
           error_of(p, 0, potentials), ratio[RUNS / 2]);
    fflush(stdout);
}

static void compare_all(const input *in, int32_t n)
{
    static const double errors[] = {1e-4, 1e-6, 3e-8, 1e-9, 5e-11};
    problem p = new_problem(in, n);
    int potentials;
    size_t e;
    for (potentials = 0; potentials < 2; potentials++) {
        int step[2] = {0, 0};
        for (e = 0; e < sizeof errors / sizeof *errors; e++)
            compare(&p, in->name, potentials, errors[e], step);
    }
    free_problem(&p);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL,
         *function = library ? dlsym(library, "rfmm2d_") : NULL;
    int a;
    size_t k;
    if (!function) {
        printf("usage: %s LIBRARY [BODIES ..]   LIBRARY: fmm2d, with rfmm2d_\n%s\n", argv[0],
               argc > 1 ? dlerror() : "");
        return 2;
    }
    memcpy(&theirs, &function, sizeof theirs);
    printf("%-13s %8s %-10s %7s  %-32s   %-36s   %s\n", "input", "bodies", "asked", "error",
           "nbody.h", "fmm2d", "ratio of times");
    for (k = 0; k < sizeof inputs / sizeof *inputs; k++) {
        if (argc < 3) compare_all(&inputs[k], 10000);
        for (a = 2; a < argc; a++) compare_all(&inputs[k], (int32_t)strtol(argv[a], NULL, 10));
    }
    return 0;
}
