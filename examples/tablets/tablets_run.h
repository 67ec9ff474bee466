/* tablets_run.h - the loop of tablets.c over many tablets, their energies, and what it prints.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef TABLETS_RUN_H
#define TABLETS_RUN_H

#include "../common/progress.h"

/* -------------------------------------------------------------------------------------------------
   >>energy
   ---------------------------------------------------------------------------------------------- */

enum { E_FLIGHT, E_SPIN, E_HEIGHT, E_SPRINGS, ENERGIES };

/* Springs: force^2 / (2 stiffness), from the history of the contacts. */
static void springs(const scene *s, double *energy)
{
    int32_t i;
    for (i = 0; s->pairs.built && i < s->bodies.base.n; i++) {
        nlist_each e = nlist_of(&s->pairs, i);
        while (nlist_next(&e)) {
            double const force = (double)((const dem_real *)e.history)[3];
            *energy += force * force / (2 * (double)s->bodies.base.between.k_n);
        }
    }
}

/* energy[ENERGIES]; momentum[6]: of flight, and angular about the origin. */
static void measure(const scene *s, double energy[ENERGIES], double momentum[6])
{
    int32_t i;
    int k;
    memset(energy, 0, ENERGIES * sizeof *energy);
    memset(momentum, 0, 6 * sizeof *momentum);
    for (i = 0; i < s->bodies.base.n; i++) {
        size_t const at = 4 * (size_t)i;
        const dem_real *x = s->bodies.base.pos + at, *v = s->bodies.base.vel + at,
                       *spin = s->bodies.base.spin + at, *l = s->bodies.momentum + at;
        dem_real turn[3];
        dem_cross(x, v, turn);
        energy[E_FLIGHT] += 0.5 * s->mass * (double)dem_dot(v, v);
        energy[E_SPIN] += 0.5 * (double)dem_dot(spin, l);
        energy[E_HEIGHT] -= s->mass * (double)dem_dot(s->bodies.base.gravity, x);
        for (k = 0; k < 3; k++) {
            momentum[k] += s->mass * (double)v[k];
            momentum[3 + k] += s->mass * (double)turn[k] + (double)l[k];
        }
    }
    springs(s, &energy[E_SPRINGS]);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

static double total(const double energy[ENERGIES])
{
    return energy[E_FLIGHT] + energy[E_SPIN] + energy[E_HEIGHT] + energy[E_SPRINGS];
}

static double length_of(const double a[3])
{
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

/* How many contacts push now. */
static int64_t touching(const scene *s)
{
    int64_t count = 0;
    int32_t i;
    for (i = 0; i < s->bodies.base.n; i++) {
        nlist_each e = nlist_of(&s->pairs, i);
        while (nlist_next(&e)) count += ((const dem_real *)e.history)[3] > 0;
    }
    return count;
}

static void print_line(const scene *s, const double e[ENERGIES])
{
    printf("%8.4f s: energy %.4e J (flight %.3e, spin %.3e, height %.3e, springs %.3e), "
           "%ld contacts\n",
           (double)s->step * (double)s->bodies.base.dt, total(e), e[E_FLIGHT], e[E_SPIN],
           e[E_HEIGHT], e[E_SPRINGS], s->pairs.built ? (long)touching(s) : 0L);
    fflush(stdout);
}

/* How far the furthest tablet is outside of the planes, in radii. */
static double outside(const scene *s)
{
    double most = 0;
    int32_t i, k;
    for (i = 0; i < s->bodies.base.n; i++)
        for (k = 0; k < s->bodies.base.planes; k++)
            most = fmax(most, (double)(s->bodies.base.plane[k].offset -
                                       dem_dot(s->bodies.base.plane[k].normal,
                                               s->bodies.base.pos + 4 * (size_t)i)));
    return most / s->options->radius;
}

/* momentum, turning: what was lost of both, in parts of n tablets at the mean speed of the start
   (and at a distance of a drum's radius); energy: in parts. */
static void print_figures(const scene *s, const double before[ENERGIES], const double moment[6],
                          double most)
{
    double const speed = sqrt(2 * before[E_FLIGHT] * s->mass * (double)s->bodies.base.n);
    double const arm = s->drum;
    double after[ENERGIES], now[6];
    int k;
    measure(s, after, now);
    for (k = 0; k < 6; k++) now[k] -= moment[k];
    printf("figures: energy %.3e momentum %.3e turning %.3e contacts %.0f outside %.5f steps %ld "
           "builds %ld listed %.2f\n",
           total(before) > 0 ? total(after) / total(before) - 1 : 0,
           speed > 0 ? length_of(now) / speed : 0,
           speed > 0 ? length_of(now + 3) / (speed * arm) : 0, most, outside(s),
           (long)s->step, (long)s->builds,
           (double)s->pairs.total / (double)s->bodies.base.n);
}

/* Makes so many steps, wherever they are computed. 0: the scene is now as they left it. */
typedef void advance_fn(void *user, int64_t steps);

/* Many tablets: a line of text for each sixth of the time, a picture and the figures. */
static void run_many(scene *s, advance_fn *advance, void *user, const char *out)
{
    enum { LINES = 6, AT_ONCE = 100 };
    int64_t const begin = s->step, steps = (int64_t)ceil(s->seconds / (double)s->bodies.base.dt);
    progress bar = progress_begin("step");
    double before[ENERGIES], energy[ENERGIES], moment[6], ignored[6], most = 0;
    picture p = panels_new(1, 1);
    int64_t line;
    measure(s, before, moment);
    print_line(s, before);
    for (line = 1; line <= LINES; line++) {
        while (s->step < begin + steps * line / LINES) {
            int64_t const left = begin + steps * line / LINES - s->step;
            advance(user, left < AT_ONCE ? left : (int64_t)AT_ONCE);
            progress_show(&bar, s->step - begin, steps, "");
        }
        progress_clear(&bar);
        advance(user, 0);
        measure(s, energy, ignored);
        print_line(s, energy);
        most = fmax(most, (double)touching(s));
    }
    draw_panel(&p, 0, 0, 1, s, "");
    picture_save_halved(&p, out);
    printf("picture: %s\n", out);
    print_figures(s, before, moment, most);
}

#endif /* TABLETS_RUN_H */
