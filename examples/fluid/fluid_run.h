/* fluid_run.h - the loop of fluid.c, what it compares with, and what it prints.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef FLUID_RUN_H
#define FLUID_RUN_H

#include "../common/progress.h"
#include "../common/vtk.h"

/* -------------------------------------------------------------------------------------------------
   >>measure
   ---------------------------------------------------------------------------------------------- */

enum { E_MOTION, E_HEIGHT, E_PRESSURE, ENERGIES };
typedef struct measured {
    double energy[ENERGIES], momentum[3], turning[3], front, axis;
} measured;

/* Per mass, of compression: the integral of p / rho^2 from rho_0, for Tait's equation. */
static double compression(const scene *s, double rho)
{
    double const x = rho / (double)s->model.rho;
    return (double)s->model.stiffness / (double)s->model.rho * (pow(x, 6) / 6 + 1 / x - 7.0 / 6);
}

static measured measure(const scene *s)
{
    measured m;
    int32_t i;
    int k;
    memset(&m, 0, sizeof m);
    for (i = 0; i < s->n; i++) {
        const fluid_real *x = s->now.pos + 4 * (size_t)i, *v = s->now.vel + 4 * (size_t)i;
        if (fluid_is_wall(x)) continue;
        for (k = 0; k < 3; k++) {
            int const a = (k + 1) % 3, b = (k + 2) % 3;
            m.energy[E_MOTION] += 0.5 * s->mass * (double)v[k] * (double)v[k];
            m.momentum[k] += s->mass * (double)v[k];
            m.turning[k] += s->mass * ((double)x[a] * (double)v[b] - (double)x[b] * (double)v[a]);
        }
        m.energy[E_HEIGHT] += s->mass * (double)s->model.gravity * (double)x[s->model.dim - 1];
        m.energy[E_PRESSURE] +=
            s->mass * compression(s, (double)s->now.density[2 * (size_t)i + 1]);
        m.front = fmax(m.front, (double)x[0] + s->spacing / 2);
        m.axis += (double)x[1] * (double)x[1] / s->fluid;
    }
    m.axis = 2 * sqrt(m.axis); /* of an ellipse with this second moment */
    return m;
}

static double total(const measured *m)
{
    return m->energy[E_MOTION] + m->energy[E_HEIGHT] + m->energy[E_PRESSURE];
}

static double length_of(const double a[3])
{
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
}

/* The largest relative error of the sums behind the densities, for some particles: all others are
   tried, in double, by the formula of the kernel as it is printed. neighbours: their mean number
   within 2 h. */
static double density_error(const scene *s, double *neighbours)
{
    double const h = (double)s->model.h,
                 scale = s->model.dim == 2 ? 7 / (4 * PI * h * h) : 21 / (16 * PI * h * h * h);
    int32_t const every = s->n / 256 + 1;
    int64_t tried = 0, found = 0;
    double most = 0;
    int32_t i, j;
    for (i = 0; i < s->n; i += every) {
        const fluid_real *x = s->now.pos + 4 * (size_t)i, *rho = s->now.density + 2 * (size_t)i;
        double sum = 0;
        if (fluid_is_wall(x)) continue;
        for (j = 0; j < s->n; j++) {
            const fluid_real *y = s->now.pos + 4 * (size_t)j;
            double const d[3] = {(double)x[0] - (double)y[0], (double)x[1] - (double)y[1],
                                 (double)x[2] - (double)y[2]},
                         q = length_of(d) / h;
            if (q < 2) sum += s->mass * scale * pow(1 - q / 2, 4) * (2 * q + 1);
            found += q < 2 && i != j;
        }
        tried++;
        most = fmax(most, fabs(((double)rho[1] - (double)rho[0]) / sum - 1));
    }
    *neighbours = tried ? (double)found / (double)tried : 0;
    return most;
}

/* -------------------------------------------------------------------------------------------------
   >>references
   ---------------------------------------------------------------------------------------------- */

/* J. C. Martin and W. J. Moyce, Part IV. An experimental study of the collapse of liquid columns on
   a rigid horizontal plane, Phil. Trans. R. Soc. Lond. A 244 (1952) 312-324: front Z = x / a at
   T = t sqrt(n^2 g / a), columns of width a = 2 1/4 inches and height n^2 a. The numbers are those
   that others compare with, and were not read in the paper itself: n^2 = 2 from a script that calls
   them its table 2, n^2 = 1 from another that uses the same a. */
static double const moyce_1[][2] = {{0.62, 1.22}, {0.80, 1.44}, {1.02, 1.67}, {1.19, 1.89},
                                    {1.34, 2.11}, {1.50, 2.33}, {1.66, 2.56}, {1.81, 2.78},
                                    {1.97, 3.00}};
static double const moyce_2[][2] = {{0.41, 1.11}, {0.84, 1.22}, {1.19, 1.44}, {1.43, 1.67},
                                    {1.63, 1.89}, {1.83, 2.11}, {1.98, 2.33}, {2.20, 2.56},
                                    {2.32, 2.78}, {2.51, 3.00}, {2.65, 3.22}, {2.83, 3.44},
                                    {2.98, 3.67}, {3.11, 3.89}, {3.33, 4.11}};

static void add_reference(curve *c, double x, double y)
{
    if (c->references == CURVE || x > c->most[0]) return;
    c->rx[c->references] = x;
    c->ry[c->references++] = y;
}

static void refer_to_moyce(const scene *s, curve *c)
{
    int const one = s->options->column == 1, count = one ? 9 : 15;
    int k;
    for (k = 0; k < count; k++)
        add_reference(c, one ? moyce_1[k][0] : moyce_2[k][0], one ? moyce_1[k][1] : moyce_2[k][1]);
}

/* A drop with velocities (-A x, A y) stays an ellipse, of half axes a and b (Monaghan 1994):
   dA/dt = A^2 (a^2 - b^2) / (a^2 + b^2), da/dt = -A a, db/dt = A b. Units: radius, speed. */
static void refer_to_ellipse(curve *c)
{
    enum { STEPS = 20000 };
    double const dt = c->most[0] / STEPS;
    double rate = 1, a = 1, b = 1;
    int k;
    for (k = 1; k <= STEPS; k++) {
        rate += dt * rate * rate * (a * a - b * b) / (a * a + b * b);
        a -= dt * rate * a;
        b += dt * rate * b;
        if (k % (STEPS / 10) == 0) add_reference(c, k * dt, b);
    }
}

/* Ours at x, from the line between two points. */
static double ours_at(const curve *c, double x)
{
    int k = 1;
    while (k < c->count - 1 && c->x[k] < x) k++;
    return c->y[k - 1] + (x - c->x[k - 1]) / (c->x[k] - c->x[k - 1]) * (c->y[k] - c->y[k - 1]);
}

/* The front at which the times of the experiment and of ours are set equal. */
static double const same_front = 1.44;

/* The largest and the mean distance of ours from the reference, in parts of `scale` or, if that is
   0, of the reference; ours later by `shift`, and then from same_front on. */
static void compare(const curve *c, double scale, double shift, double *most, double *mean)
{
    int k;
    *most = *mean = 0;
    for (k = 0; k < c->references; k++) {
        double const away = fabs(ours_at(c, c->rx[k] - shift) - c->ry[k]) /
                            (scale > 0 ? scale : c->ry[k]);
        if (shift > 0 && c->ry[k] < same_front) continue;
        *most = fmax(*most, away);
        *mean += away / c->references;
    }
}

/* By how much ours must be later to pass same_front with the experiment: water does not begin at
   once when a gate is drawn. */
static double shift_of(const curve *c)
{
    double const where = same_front;
    int k = 1, r = 0;
    while (k < c->count - 1 && c->y[k] < where) k++;
    while (r < c->references && c->ry[r] < where - 1e-9) r++;
    if (r == c->references || c->y[k] < where) return 0;
    return c->rx[r] - (c->x[k] - (c->y[k] - where) / (c->y[k] - c->y[k - 1]) *
                                     (c->x[k] - c->x[k - 1]));
}

/* -------------------------------------------------------------------------------------------------
   >>curves
   ---------------------------------------------------------------------------------------------- */

static curve curve_new(const scene *s)
{
    static const char *const titles[] = {"Front of the dam", "Pressure", "Longer half axis"};
    static const char *const across[] = {"T = t sqrt(n^2 g / a)", "depth / height",
                                         "t speed / radius"};
    static const char *const up[] = {"Z = x / a", "p / (rho g height)", "b / radius"};
    static const char *const references[] = {"discs: Martin and Moyce 1952", "discs: rho g depth",
                                             "discs: exact"};
    curve c;
    memset(&c, 0, sizeof c);
    c.title = titles[s->kind];
    c.across = across[s->kind];
    c.up = up[s->kind];
    c.reference = references[s->kind];
    c.least[1] = s->kind == SCENE_STILL ? 0 : 1;
    c.most[0] = s->kind == SCENE_STILL ? 1 : s->until / s->unit;
    c.most[1] = s->kind == SCENE_STILL ? 1.2 : s->kind == SCENE_DAM ? 5 : 3;
    if (s->kind == SCENE_DAM) refer_to_moyce(s, &c);
    if (s->kind == SCENE_DROP && s->model.dim == 2) refer_to_ellipse(&c);
    return c;
}

static void curve_add(const scene *s, curve *c, const measured *m)
{
    if (s->kind == SCENE_STILL || c->count == CURVE) return;
    c->x[c->count] = (double)s->step * (double)s->model.dt / s->unit;
    c->y[c->count++] = s->kind == SCENE_DAM ? m->front / s->width : m->axis / (s->width / 2);
}

/* At rest: the mean pressure of each layer, from the surface down. */
static void add_layers(const scene *s, curve *c)
{
    double const scale = 1000 * (double)s->model.gravity * s->height;
    int32_t const layers = s->options->across < CURVE ? s->options->across : CURVE;
    int32_t *count = (int32_t *)zeros((size_t)layers, sizeof *count), i, k;
    for (i = 0; i < s->n; i++) {
        const fluid_real *x = s->now.pos + 4 * (size_t)i;
        double const rho = (double)s->now.density[2 * (size_t)i + 1],
                     depth = 1 - (double)x[s->model.dim - 1] / s->height;
        if (fluid_is_wall(x)) continue;
        k = (int32_t)fmax(0, fmin(layers - 1, floor(depth * layers)));
        c->x[k] += depth;
        c->y[k] += (double)s->now.vel[4 * (size_t)i + 3] * rho * rho / scale;
        count[k]++;
    }
    for (k = 0; k < layers; k++) {
        if (!count[k]) continue;
        c->x[c->count] = c->x[k] / count[k];
        c->y[c->count] = c->y[k] / count[k];
        add_reference(c, c->x[c->count], c->x[c->count]);
        c->count++;
    }
    free(count);
}

/* -------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

static void print_line(const scene *s, const measured *m)
{
    printf("T %7.4f: energy %.6e J (motion %.3e, height %.3e, pressure %.3e), front %.4f\n",
           (double)s->step * (double)s->model.dt / s->unit, total(m), m->energy[E_MOTION],
           m->energy[E_HEIGHT], m->energy[E_PRESSURE], m->front / s->width);
    fflush(stdout);
}

/* grows: the most by which energy rose above what it had been before, in parts of the first;
   momentum, turning: what was gained, in parts of all mass at the largest speed and, for turning,
   at the width of the column. */
static void print_figures(const scene *s, const curve *c, const measured *first,
                          const measured *last, double grows)
{
    double const all = s->mass * s->fluid * s->speed;
    double momentum[3], turning[3], most, mean, shifted, ignored, neighbours;
    double const density = density_error(s, &neighbours);
    int k;
    for (k = 0; k < 3; k++) {
        momentum[k] = last->momentum[k] - first->momentum[k];
        turning[k] = last->turning[k] - first->turning[k];
    }
    compare(c, s->kind == SCENE_STILL ? 1 : 0, 0, &most, &mean);
    compare(c, 0, c->shift, &shifted, &ignored);
    printf("figures: energy %.4e grows %.3e momentum %.3e turning %.3e density %.3e most %.4f mean "
           "%.4f shift %.4f shifted %.4f motion %.3e neighbours %.2f fluid %ld walls %ld steps %ld "
           "builds %ld\n",
           total(last) / total(first) - 1, grows, length_of(momentum) / all,
           length_of(turning) / (all * s->width), density, most, mean, c->shift, shifted,
           last->energy[E_MOTION] / (0.5 * all * s->speed), neighbours, (long)s->fluid,
           (long)(s->n - s->fluid), (long)s->step, (long)s->builds);
}

static void write_vtk(const scene *s, const char *out, int32_t number)
{
    float *record = (float *)zeros((size_t)s->n, 4 * sizeof *record);
    char folder[1024];
    const char *last = strrchr(out, '/');
    vtk file;
    size_t k;
    snprintf(folder, sizeof folder, "%.*s", last ? (int)(last - out) : 1, last ? out : ".");
    file = vtk_begin(folder, "fluid", number, (int32_t)s->step, 0);
    for (k = 0; k < 4 * (size_t)s->n; k++) record[k] = (float)s->now.pos[k];
    vtk_points(&file, record, s->n, 4);
    for (k = 0; k < 4 * (size_t)s->n; k++) record[k] = (float)s->now.vel[k];
    vtk_vectors(&file, "velocity", record, s->n, 4);
    for (k = 0; k < (size_t)s->n; k++) {
        fluid_real const rho = s->now.density[2 * k + 1];
        record[k] = (float)(s->now.vel[4 * k + 3] * rho * rho);
    }
    vtk_scalars(&file, "pressure", "float");
    vtk_columns(&file, record, s->n, 1, 1);
    vtk_end(&file);
    free(record);
}

static void print_times(const scene *s)
{
    double const ms = 1e3 / (double)(s->step ? s->step : 1);
    printf("time: %.4f ms a step: lists %.4f densities %.4f walls %.4f forces %.4f\n",
           ms * (s->spent[0] + s->spent[1] + s->spent[2] + s->spent[3]), ms * s->spent[0],
           ms * s->spent[1], ms * s->spent[2], ms * s->spent[3]);
}

#ifndef __CUDACC__ /* fluid_gpu.h has its own */

/* One pass over forces, without moves: with kept gradients or with new ones. */
static double time_pass(scene *s, int again)
{
    double const start = processor_seconds();
    const fluid_particles *now = &s->now;
    int32_t i;
    for (i = 0; i < s->n; i++) {
        const fluid_real *p = now->pos + 4 * (size_t)i, *v = now->vel + 4 * (size_t)i;
        nlist_each e = nlist_of(&s->list, i);
        fluid_real *sum = s->spare.vel + 4 * (size_t)i;
        fluid_kept new_one;
        sum[0] = sum[1] = sum[2] = 0;
        while (!fluid_is_wall(p) && nlist_next(&e)) {
            if (again) fluid_meet(&s->model, p, now->pos + 4 * (size_t)e.id, &new_one);
            fluid_push(again ? &new_one : &s->kept[e.entry], v, now->vel + 4 * (size_t)e.id, sum);
        }
    }
    return processor_seconds() - start;
}

/* Medians; the two take turns. */
static void time_forces(scene *s)
{
    enum { ROUNDS = 21 };
    double kept[ROUNDS], again[ROUNDS];
    int k;
    for (k = 0; k < ROUNDS; k++) {
        kept[k] = 1e3 * time_pass(s, 0);
        again[k] = 1e3 * time_pass(s, 1);
    }
    printf("forces: %.4f ms with kept gradients, %.4f ms computed again; entries %ld\n",
           median(kept, ROUNDS), median(again, ROUNDS), (long)s->list.total);
}

#endif

/* Makes so many steps, wherever they are computed; then the scene is as they left it, with
   densities and pressures of its places. */
typedef void advance_fn(void *user, int64_t steps);

#include "fluid_window.h"

/* A line of text at the start and at each of the pictures. */
static void show(const scene *s, picture *p, int number, const char *out, const measured *m)
{
    char caption[64];
    print_line(s, m);
    snprintf(caption, sizeof caption, "T = %.2f", (double)s->step * (double)s->model.dt / s->unit);
    if (number > 0) draw_moment(p, number - 1, s, caption);
    if (s->options->vtk) write_vtk(s, out, number);
}

static void run_to_the_end(scene *s, advance_fn *advance, void *user)
{
    enum { SAMPLES = 120 }; /* a multiple of SHOTS */
    int64_t const steps = (int64_t)ceil(s->until / (double)s->model.dt);
    char usual[64];
    const char *out = s->options->out ? s->options->out : usual;
    picture p = picture_new(2 * PANEL_WIDE, 2 * PANEL_HIGH, gray(1));
    progress bar = progress_begin("step");
    curve c = curve_new(s);
    measured const first = measure(s);
    measured now = first;
    double grows = 0, least = total(&first);
    int k;
    snprintf(usual, sizeof usual, "build/fluid_%s.png", s->options->scene);
    curve_add(s, &c, &first);
    show(s, &p, 0, out, &first);
    memset(s->spent, 0, sizeof s->spent);
    for (k = 1; k <= SAMPLES; k++) {
        advance(user, steps * k / SAMPLES - s->step);
        now = measure(s);
        curve_add(s, &c, &now);
        grows = fmax(grows, total(&now) / total(&first) - least / total(&first));
        least = fmin(least, total(&now));
        progress_show(&bar, s->step, steps, "");
        progress_clear(&bar);
        if (k % (SAMPLES / SHOTS) == 0) show(s, &p, k / (SAMPLES / SHOTS), out, &now);
    }
    if (s->kind == SCENE_STILL) add_layers(s, &c);
    if (s->kind == SCENE_DAM) c.shift = shift_of(&c);
    draw_plot(&p, SHOTS, &c);
    picture_save_halved(&p, out);
    printf("picture: %s\n", out);
    if (s->options->time) print_times(s);
    print_figures(s, &c, &first, &now, grows);
}

static void run(scene *s, advance_fn *advance, void *user)
{
    if (s->options->window) watch(s, advance, user);
    else run_to_the_end(s, advance, user);
}

#endif /* FLUID_RUN_H */
