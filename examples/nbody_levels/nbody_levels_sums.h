/* nbody_levels_sums.h - forces from the drawn points alone, counts, and a file of what acts.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef NBODY_LEVELS_SUMS_H
#define NBODY_LEVELS_SUMS_H

#include "../common/vtk.h"

/* Bodies, points and mass of what acts at a level in one of two ways. */
typedef struct tally { long cells, bodies, points; double mass; } tally;

static tally tally_of(const scene *s, int32_t level, kind one, kind other)
{
    tally t = {0, 0, 0, 0};
    int32_t k;
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        if (a->level != level || (a->how != one && a->how != other)) continue;
        t.cells++;
        t.bodies += s->sim.cell[a->cell].count;
        t.points += a->count;
        t.mass += a->mass * s->sim.frame->mass;
    }
    return t;
}

static double mass_of_all(const scene *s)
{
    double sum = 0;
    int32_t k;
    for (k = 0; k < s->actors; k++) sum += s->actor[k].mass;
    return sum * s->sim.frame->mass;
}

/* -------------------------------------------------------------------------------------------------
   >>sums: forces, from the drawn points alone, in double
   ---------------------------------------------------------------------------------------------- */

/* What a point does to a unit mass at (x, y); *terms: lengths of all such terms (may be NULL). */
static void add_pull(const nbody *sim, vector *sum, double x, double y, const point *q,
                     double *terms)
{
    double const dx = q->x - x, dy = q->y - y, r2 = dx * dx + dy * dy;
    double const d2 = r2 + sim->frame->soften2;
    double f;
    if (!(r2 > 0)) return;
    f = q->m / (d2 * sqrt(d2));
    sum->x += f * dx;
    sum->y += f * dy;
    if (terms) *terms += fabs(f) * sqrt(r2);
}

static vector in_your_units(const nbody *sim, vector f)
{
    double const unit =
        (double)sim->desc.gravity * sim->frame->mass / (sim->frame->length * sim->frame->length);
    f.x *= unit;
    f.y *= unit;
    return f;
}

/* The oracle: every body, one by one. */
static vector direct_sum(const scene *s, double *terms)
{
    const nbody *sim = &s->sim;
    vector sum = {0, 0};
    int32_t k;
    *terms = 0;
    for (k = 0; k < s->n; k++) {
        point q;
        q.x = (double)sim->x[k];
        q.y = (double)sim->y[k];
        q.m = (double)sim->m[k];
        add_pull(sim, &sum, (double)sim->x[s->place], (double)sim->y[s->place], &q, terms);
    }
    return sum;
}

/* What acts at a level in one of two ways, on a unit mass at (x, y). */
static void add_level(const scene *s, int32_t level, kind one, kind other, double x, double y,
                      vector *sum)
{
    int32_t k, p;
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        if (a->level != level || (a->how != one && a->how != other)) continue;
        for (p = a->first; p < a->first + a->count; p++)
            add_pull(&s->sim, sum, x, y, &s->point[p], NULL);
    }
}

/* Where node (i, j) of a cell is. */
static vector node_at(const nbody *sim, int32_t cell, int32_t i, int32_t j)
{
    vector at = corner_of(sim, cell);
    double const side = side_at(sim, sim->cell[cell].level);
    at.x += side * (double)sim->rule.t[i];
    at.y += side * (double)sim->rule.t[j];
    return at;
}

/* Forces at the nodes of the cell that holds the body, level by level: what the parent's nodes
   felt, interpolated, and the far cells of this level. `f` has those of the parent, and then
   those of the cell. */
static void descend(const scene *s, int32_t level, vector f[MOST_NODES])
{
    const nbody *sim = &s->sim;
    int32_t const cell = s->chain[level], k = sim->rule.side;
    const nbody_real(*wx)[NBODY_MAX_ORDER] =
        (const nbody_real(*)[NBODY_MAX_ORDER])sim->rule.to_child[sim->cell[cell].x & 1];
    const nbody_real(*wy)[NBODY_MAX_ORDER] =
        (const nbody_real(*)[NBODY_MAX_ORDER])sim->rule.to_child[sim->cell[cell].y & 1];
    vector child[MOST_NODES];
    int32_t a, b, i, j;
    for (b = 0; b < k; b++)
        for (a = 0; a < k; a++) {
            vector const at = node_at(sim, cell, a, b);
            vector sum = {0, 0};
            for (j = 0; level > 2 && j < k; j++)
                for (i = 0; i < k; i++) {
                    double const w = (double)wx[a][i] * (double)wy[b][j];
                    sum.x += w * f[i + k * j].x;
                    sum.y += w * f[i + k * j].y;
                }
            add_level(s, level, FAR_SOURCES, FAR_BODIES, at.x, at.y, &sum);
            child[a + k * b] = sum;
        }
    memcpy(f, child, sizeof child);
}

/* How much each node of a row counts at u, 0 to 1: the two beside it (linear), or all of them
   (the polynomial through them). */
static void weights_at(const nbody_rule *rule, double u, double w[NBODY_MAX_ORDER])
{
    int32_t const k = rule->side;
    int32_t i, j;
    if (rule->linear) {
        double const at = u * k - 0.5;
        /* beyond the last node the line goes on */
        int32_t const first = at < 0 ? 0 : at >= k - 1 ? k - 2 : (int32_t)at;
        for (i = 0; i < k; i++) w[i] = 0;
        w[first] = 1 - (at - first);
        w[first + 1] = at - first;
        return;
    }
    for (i = 0; i < k; i++) {
        w[i] = 1;
        for (j = 0; j < k; j++)
            if (j != i)
                w[i] *= (u - (double)rule->t[j]) / ((double)rule->t[i] - (double)rule->t[j]);
    }
}

static void body_weights(const scene *s, double wx[NBODY_MAX_ORDER], double wy[NBODY_MAX_ORDER])
{
    const nbody *sim = &s->sim;
    int32_t const leaf = s->chain[s->levels - 1];
    vector const corner = corner_of(sim, leaf);
    double const side = side_at(sim, sim->cell[leaf].level);
    weights_at(&sim->rule, ((double)sim->x[s->place] - corner.x) / side, wx);
    weights_at(&sim->rule, ((double)sim->y[s->place] - corner.y) / side, wy);
}

/* The far part by way of the nodes. */
static vector through_nodes(const scene *s)
{
    int32_t const k = s->sim.rule.side;
    double wx[NBODY_MAX_ORDER], wy[NBODY_MAX_ORDER];
    vector f[MOST_NODES], sum = {0, 0};
    int32_t level, i, j;
    if (s->levels <= 2) return sum;
    for (level = 2; level < s->levels; level++) descend(s, level, f);
    body_weights(s, wx, wy);
    for (j = 0; j < k; j++)
        for (i = 0; i < k; i++) {
            sum.x += wx[i] * wy[j] * f[i + k * j].x;
            sum.y += wx[i] * wy[j] * f[i + k * j].y;
        }
    return sum;
}

/* The force on the body, from what was drawn. */
static vector drawn_sum(const scene *s)
{
    const nbody *sim = &s->sim;
    double const x = (double)sim->x[s->place], y = (double)sim->y[s->place];
    vector sum = {0, 0};
    int32_t level;
    if (sim->desc.method == NBODY_FORCE_NODES) sum = through_nodes(s);
    else
        for (level = 2; level < s->levels; level++)
            add_level(s, level, FAR_SOURCES, FAR_BODIES, x, y, &sum);
    add_level(s, s->levels - 1, NEAR_SOURCES, NEAR_BODIES, x, y, &sum);
    return sum;
}

/* -------------------------------------------------------------------------------------------------
   >>text: counts, sums, and a file of what acts
   ---------------------------------------------------------------------------------------------- */

static const char *how_text(kind how)
{
    static const char *const text[] = {"far sources", "far bodies", "near sources", "near bodies"};
    return text[how];
}

/* In your units, with all digits: the square, the bodies, then each acting cell (the level at
   which it acts, its own level, its column and row, and how) with its points.
   tests/examples/test_nbody_levels.sh makes all of it a second time from the bodies. */
static void write_text(const scene *s, const char *folder)
{
    const nbody *sim = &s->sim;
    char name[64];
    out_file out;
    FILE *file;
    double const length = sim->frame->length, mass = sim->frame->mass;
    int32_t i, k, p;
    snprintf(name, sizeof name, "%s.txt", s->name);
    out = create_in(folder, name);
    file = out.file;
    fprintf(file, "square %.17g %.17g %.17g\n", sim->frame->min[0], sim->frame->min[1],
            sim->frame->size);
    fprintf(file, "look %ld leaf %ld levels %ld\n", (long)s->id, (long)s->levels - 1,
            (long)sim->frame->levels);
    for (i = 0; i < s->n; i++)
        fprintf(file, "body %.9g %.9g 1\n", (double)s->pos[2 * i], (double)s->pos[2 * i + 1]);
    for (k = 0; k < s->actors; k++) {
        const actor *a = &s->actor[k];
        const nbody_cell *c = &sim->cell[a->cell];
        fprintf(file, "cell %ld %d %ld %ld %s\n", (long)a->level, c->level, (long)c->x, (long)c->y,
                how_text(a->how));
        for (p = a->first; p < a->first + a->count; p++)
            fprintf(file, "point %.9g %.9g %.9g\n", s->point[p].x * length, s->point[p].y * length,
                    s->point[p].m * mass);
    }
    close_file(&out);
}

/* >>vtk: the cells of all levels as squares, with their level, bodies, and what acts: 0 nothing, 1
   virtual particles from afar, 2 bodies from afar, 3 virtual particles and 4 bodies nearby. */
static void write_cells(const scene *s, const char *folder, int32_t number)
{
    static const float away[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    const nbody_frame *frame = s->sim.frame;
    int32_t *acts = (int32_t *)zeros((size_t)frame->cells, sizeof *acts);
    vtk const v = vtk_begin(folder, "cells", number, 0, 1);
    int32_t c, k;
    for (k = 0; k < s->actors; k++) acts[s->actor[k].cell] = (int32_t)s->actor[k].how + 1;
    fprintf(v.out.file, "POINTS %ld float\n", 4 * (long)frame->cells);
    for (k = 0; k < 4 * frame->cells; k++) {
        const nbody_cell *cell = &s->sim.cell[k / 4];
        double const side = frame->size / (double)(1L << cell->level);
        float const at[3] = {(float)(frame->min[0] + side * (cell->x + (double)away[k % 4][0])),
                             (float)(frame->min[1] + side * (cell->y + (double)away[k % 4][1])), 0};
        vtk_floats(&v, at, 3);
    }
    fprintf(v.out.file, "\nPOLYGONS %ld %ld\n", (long)frame->cells, 5 * (long)frame->cells);
    for (c = 0; c < frame->cells; c++) {
        int32_t const square[5] = {4, 4 * c, 4 * c + 1, 4 * c + 2, 4 * c + 3};
        vtk_ints(&v, square, 5);
    }
    fprintf(v.out.file, "\nCELL_DATA %ld", (long)frame->cells);
    vtk_scalars(&v, "level", "int");
    for (c = 0; c < frame->cells; c++) {
        int32_t const level = s->sim.cell[c].level;
        vtk_ints(&v, &level, 1);
    }
    vtk_scalars(&v, "bodies", "int");
    for (c = 0; c < frame->cells; c++) vtk_ints(&v, &s->sim.cell[c].count, 1);
    vtk_scalars(&v, "acts", "int");
    vtk_ints(&v, acts, frame->cells);
    vtk_end(&v);
    free(acts);
}

static void print_tally(const char *what, tally t, const char *points)
{
    printf("   %-9s  %5ld cells with %6ld bodies act through %6ld %-17s", what, t.cells, t.bodies,
           t.points, points);
    printf(" of mass %.6g\n", t.mass);
}

static void print_level(const scene *s, int32_t level)
{
    tally const sources = tally_of(s, level, FAR_SOURCES, FAR_SOURCES),
                bodies = tally_of(s, level, FAR_BODIES, FAR_BODIES);
    char what[32];
    snprintf(what, sizeof what, "level %ld", (long)level);
    if (sources.cells || !bodies.cells) print_tally(what, sources, "virtual particles");
    if (bodies.cells) print_tally(what, bodies, "bodies");
}

/* What acts, level by level; the masses must be those of all bodies. */
static void print_actors(const scene *s)
{
    tally const whole = tally_of(s, s->levels - 1, NEAR_BODIES, NEAR_BODIES);
    tally const parts = tally_of(s, s->levels - 1, NEAR_SOURCES, NEAR_SOURCES);
    double const all = mass_of_all(s);
    long bodies = 0;
    int32_t level, k;
    for (k = 0; k < s->actors; k++) bodies += s->sim.cell[s->actor[k].cell].count;
    for (level = 2; level < s->levels; level++) print_level(s, level);
    if (parts.cells) print_tally("near", parts, "virtual particles");
    print_tally("near", whole, "bodies");
    printf("   all        %5ld cells with %6ld bodies act through %6ld points            of mass "
           "%.6g\n",
           (long)s->actors, bodies, (long)s->points, all);
    if (bodies != s->n || fabs(all - s->n) > 1e-4 * s->n)
        stop(1, "%s: what acts stands for %ld bodies and has the mass %.9g; there are %ld bodies",
             s->name, bodies, all, (long)s->n);
}

/* The force, made of what was drawn, beside the library's and the direct sum. Returns the error,
   as a share of the sum of all lengths. */
static double print_force(const scene *s)
{
    const nbody *sim = &s->sim;
    double terms, difference, error;
    vector const exact = direct_sum(s, &terms), drawn = drawn_sum(s);
    vector const e = in_your_units(sim, exact), d = in_your_units(sim, drawn);
    double const ax = (double)s->acc[2 * s->id], ay = (double)s->acc[2 * s->id + 1],
                 length = hypot(e.x, e.y);
    vector unit = {1, 0};
    terms *= in_your_units(sim, unit).x;
    printf("   acceleration, from what is drawn:      %14.8g %14.8g\n", d.x, d.y);
    printf("   nbody_accelerations:                   %14.8g %14.8g\n", ax, ay);
    printf("   all bodies one by one, in double:      %14.8g %14.8g", e.x, e.y);
    difference = hypot(d.x - e.x, d.y - e.y);
    printf(length > 0 ? "   off by %.1e of its length\n" : "\n", difference / length);
    error = terms > 0 ? difference / terms : 0;
    if (hypot(d.x - ax, d.y - ay) > 1e-5 * terms)
        stop(1, "%s: what is drawn gives another force than nbody_accelerations", s->name);
    return error;
}

#endif /* NBODY_LEVELS_SUMS_H */
