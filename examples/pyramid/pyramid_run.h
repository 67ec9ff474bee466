/* pyramid_run.h - a run of pyramid.c or pyramid.cu: all steps, a line of text for each second, what
   is left in the end.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PYRAMID_RUN_H
#define PYRAMID_RUN_H

#include "../common/progress.h"
#include "pyramid.h"

/* So many steps: pyramid.c has it, and pyramid.cu has its own. Afterwards spheres and lists of h
   are those of the last step. */
static void advance(heap *h, long steps);

/* The steps of pyramid.c, whatever advance is. */
static void advance_serial(heap *h, long steps);

/* -------------------------------------------------------------------------------------------------
   >>report
   ---------------------------------------------------------------------------------------------- */

static double furthest(const heap *h)
{
    double most = 0;
    int i;
    for (i = 0; i < SPHERES; i++) most = fmax(most, (double)h->spheres.moved[i]);
    return most;
}

/* The largest distance of a sphere from the same one of another heap. */
static double apart(const heap *h, const heap *other)
{
    double most = 0;
    int i, a;
    for (i = 0; i < SPHERES; i++) {
        double d2 = 0;
        for (a = 0; a < 3; a++) {
            double const d = (double)(h->spheres.pos[4 * i + a] - other->spheres.pos[4 * i + a]);
            d2 += d * d;
        }
        most = fmax(most, sqrt(d2));
    }
    return most;
}

/* Of moving and turning (a ball has I = 2/5 m r^2), in parts of what the top loses by falling one
   radius. */
static double energy(const heap *h)
{
    double sum = 0;
    int i;
    for (i = 0; i < SPHERES; i++) {
        const dem_real *vel = h->spheres.vel + 4 * i, *spin = h->spheres.spin + 4 * i;
        sum += 0.5 * (double)dem_dot(vel, vel);
        sum += 0.2 * radius * radius * (double)dem_dot(spin, spin);
    }
    return sum / (gravity * radius);
}

static void print_second(const heap *h, const heap *beside, double time)
{
    const char *what = h->system.history_off ? "without history" : "with history";
    printf("%s %8.3f s: furthest from its start, so far: %.5f radii", what, time,
           furthest(h) / radius);
    if (beside) printf(", energy %.2e, off the serial heap by %.2e", energy(h),
                       apart(h, beside) / radius);
    putchar('\n');
    fflush(stdout);
}

/* Simulates `seconds`, a line of text for each, and draws at 0, 1 and 2 s into a row of panels.
   beside: NULL, or another heap, which takes the same steps on the CPU. Returns the largest
   distance between the two that a line has shown. */
static double run(heap *h, heap *beside, double seconds, picture *c, int top)
{
    double const dt = (double)h->system.dt;
    long const steps = lround(seconds / dt);
    long done = 0, next;
    int second;
    double spent = 0, off = 0;
    progress bar = progress_begin("second");
    char caption[64];
    for (second = 0;; second++, done = next) {
        double const from = seconds_now();
        next = second ? (long)ceil(second / dt - 1e-9) : 0;
        if (next > steps) next = steps;
        advance(h, next - done);
        spent += seconds_now() - from;
        if (beside) advance_serial(beside, next - done);
        if (beside) off = fmax(off, apart(h, beside));
        progress_clear(&bar);
        print_second(h, beside, (double)next * dt);
        if (second) progress_show(&bar, second, (int64_t)ceil(seconds), "");
        snprintf(caption, sizeof caption, "%s, %d s",
                 h->system.history_off ? "without history" : "with history", second);
        if (second < SHOTS) draw_panel(c, second * PANEL_WIDE, top, h, caption);
        if (next == steps) break;
    }
    printf("%ld steps in %.3g s\n", steps, spent);
    return off;
}

/* A contact of the list, in weights: the normal force, and what part of it friction takes. */
static void print_contact(int i, const char *other, const void *history,
                          const dem_material *material)
{
    const dem_real *spring = (const dem_real *)history;
    double const weight = dem_mass(radius, density) * gravity, normal = (double)spring[3];
    if (!(normal > 0)) return;
    printf("contact %d %s normal %.5f friction %.5f\n", i, other, normal / weight,
           (double)material->k_t * sqrt((double)dem_dot(spring, spring)) / normal);
}

static void print_contacts(const heap *h)
{
    int32_t i;
    for (i = 0; i < SPHERES; i++) {
        nlist_each pair = nlist_of(&h->pairs, i), wall = nlist_of(&h->walls, i);
        char other[16];
        while (nlist_next(&wall)) print_contact(i, "floor", wall.history, &h->system.walls);
        while (nlist_next(&pair)) {
            snprintf(other, sizeof other, "%d", (int)pair.id);
            print_contact(i, other, pair.history, &h->system.between);
        }
    }
}

static double fastest(const heap *h)
{
    double most = 0;
    int i;
    for (i = 0; i < SPHERES; i++) {
        const dem_real *vel = h->spheres.vel + 4 * i;
        most = fmax(most, sqrt((double)dem_dot(vel, vel)));
    }
    return most;
}

/* In radii: how far they went, with and without history, how high the top is; and the speed that
   is left, in m/s. */
static void print_figures(const heap *with, const heap *without)
{
    double const height = (double)with->spheres.pos[4 * TOP + 1],
                 height_without = (double)without->spheres.pos[4 * TOP + 1];
    printf("figures: with %.5f without %.5f top_with %.5f top_without %.5f speed_with %.3g\n",
           furthest(with) / radius, furthest(without) / radius, height / radius,
           height_without / radius, fastest(with));
}

#endif /* PYRAMID_RUN_H */
