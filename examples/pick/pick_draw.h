/* pick_draw.h - the picture of pick.c: row after row of rays, timed, and the colors of what they
   met.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef PICK_DRAW_H
#define PICK_DRAW_H

/* Light from the sun, unless something is in the way, and a little from everywhere, more from
   above. */
static vec lit(const camera *c, const sample *ray, vec color)
{
    double const sun = ray->faces_sun && !ray->shaded ? (double)dot(ray->normal, c->sun) : 0;
    vec const around = between(vec_of(0.16, 0.14, 0.13), vec_of(0.25, 0.29, 0.37),
                               0.5 + 0.5 * (double)ray->normal.x[2]);
    vec const light = along(around, (real)sun, vec_of(0.92, 0.85, 0.74));
    int k;
    for (k = 0; k < 3; k++) color.x[k] *= light.x[k];
    return color;
}

static vec color_of(const scene *s, const camera *c, const sample *ray, int32_t picked)
{
    double const upwards = ray->direction.x[2] > 0 ? (double)ray->direction.x[2] : 0;
    vec const sky = between(vec_of(0.66, 0.75, 0.84), vec_of(0.22, 0.36, 0.58), upwards);
    double away;
    if (!ray->solid) return sky;
    if (ray->on.id != NOTHING)
        return lit(c, ray, ray->on.id == picked ? vec_of(0.02, 0.25, 1) : vec_of(0.86, 0.36, 0.13));
    /* the floor fades into the sky */
    away = (double)(length(minus(ray->at, s->centre)) / s->radius) / 7;
    return between(lit(c, ray, vec_of(0.56, 0.58, 0.60)), sky, away < 1 ? away * away : 1);
}

static unsigned char byte_of(real level)
{
    double const shown = pow(level > 0 ? (double)level : 0, 1 / 2.2);
    return (unsigned char)(shown < 1 ? 255 * shown + 0.5 : 255);
}

/* Each pixel is the average of its samples. */
static void shade_row(const scene *s, const camera *c, const options *o, const sample *row,
                      int32_t picked, unsigned char *rgb)
{
    int32_t const each = o->samples * o->samples;
    int32_t x, k;
    for (x = 0; x < o->width; x++) {
        vec color = vec_of(0, 0, 0);
        for (k = 0; k < each; k++)
            color = along(color, 1 / (real)each, color_of(s, c, &row[x * each + k], picked));
        for (k = 0; k < 3; k++) rgb[3 * x + k] = byte_of(color.x[k]);
    }
}

/* A ring around the pixel that was picked. */
static void mark_pixel(const options *o, unsigned char *rgb)
{
    int32_t x, y;
    for (y = 0; o->pick[0] >= 0 && y < o->height; y++)
        for (x = 0; x < o->width; x++) {
            double const away = hypot(x - o->pick[0], y - o->pick[1]);
            if (away > 10 && away < 14)
                memset(rgb + 3 * ((size_t)y * (size_t)o->width + (size_t)x), away < 12 ? 255 : 0,
                       3);
        }
}

/* -------------------------------------------------------------------------------------------------
   >>picture
   ---------------------------------------------------------------------------------------------- */

typedef struct figures {
    int64_t rays, hits, shadow_rays, shadows;
    double seconds, shadow_seconds;
    uint64_t checksum;  /* of the triangles hit, in the order of the rays (FNV-1a) */
    double closest;
} figures;

static void count_hit(figures *f, const hit *on)
{
    f->checksum = (f->checksum ^ (uint32_t)on->id) * UINT64_C(0x100000001b3);
    f->rays++;
    if (on->id == NOTHING) return;
    f->hits++;
    if (f->hits == 1 || (double)on->t < f->closest) f->closest = (double)on->t;
}

/* All rays of one row of pixels, pixel after pixel; then all their shadow rays. Each is timed by
   itself. */
static void cast_row(const scene *s, const camera *c, const options *o, int32_t y, sample *row,
                     figures *f)
{
    int32_t const each = o->samples * o->samples, count = o->width * each;
    double const start = seconds_now();
    double primary;
    int32_t k;
    for (k = 0; k < count; k++) {
        double const in_x = (k % each % o->samples + 0.5) / o->samples,
                     in_y = (k % each / o->samples + 0.5) / o->samples;
        row[k] = look(s, c, sight(c, o, k / each + in_x, y + in_y));
    }
    primary = seconds_now();
    for (k = 0; k < count; k++) {
        if (!row[k].faces_sun) continue;
        row[k].shaded = any_hit(s, row[k].at, c->sun);
        f->shadow_rays++;
        f->shadows += row[k].shaded;
    }
    f->shadow_seconds += seconds_now() - primary;
    f->seconds += primary - start;
    for (k = 0; k < count; k++) count_hit(f, &row[k].on);
}

static picture draw(const scene *s, const camera *c, const options *o, int32_t picked, figures *f)
{
    progress rows = progress_begin("row");
    picture p = picture_new(o->width, o->height, gray(0));
    sample *row =
        (sample *)zeros((size_t)o->width * (size_t)(o->samples * o->samples), sizeof *row);
    int32_t y;
    memset(f, 0, sizeof *f);
    f->checksum = UINT64_C(0xcbf29ce484222325);
    for (y = 0; y < o->height; y++) {
        cast_row(s, c, o, y, row, f);
        shade_row(s, c, o, row, picked, p.rgb + 3 * (size_t)y * (size_t)o->width);
        progress_show(&rows, y + 1, o->height, "");
    }
    mark_pixel(o, p.rgb);
    free(row);
    return p;
}

static void say_tree(const scene *s, const options *o)
{
    lbvh_quality q;
    MUST(lbvh, lbvh_measure(&s->tree, &q), "measuring the tree");
    printf("mesh       %s: %ld triangles, %ld vertices\n", o->mesh ? o->mesh : "a torus knot",
           (long)s->m.triangles, (long)s->m.vertices);
    printf("tree       built in %.1f ms, %.1f MB, depth %ld (%.1f on average), SAH cost %.1f\n",
           s->build_ms, (double)lbvh_bytes(&s->tree) / 1e6, (long)q.depth, q.mean_depth, q.sah);
}

static void say_rays(const char *what, int64_t rays, double seconds, int64_t hits, const char *met)
{
    printf("%-10s %lld rays, %.2f Mrays/s, %.0f %% %s\n", what, (long long)rays,
           1e-6 * (double)rays / (seconds + 1e-9), 100 * (double)hits / (double)(rays ? rays : 1),
           met);
}

static void say_figures(const scene *s, const options *o, const figures *f)
{
    say_rays("primary", f->rays, f->seconds, f->hits, "hit");
    say_rays("shadow", f->shadow_rays, f->shadow_seconds, f->shadows, "blocked");
    printf("picture    %s\n", o->out);
    printf(
        "figures: triangles %ld rays %lld hits %lld shadows %lld checksum %016llx closest %.6f\n",
        (long)s->m.triangles, (long long)f->rays, (long long)f->hits, (long long)f->shadows,
        (unsigned long long)f->checksum, f->closest);
}

static void draw_mesh(const scene *s, const camera *c, const options *o, int32_t picked)
{
    figures f;
    picture p = draw(s, c, o, picked, &f);
    picture_save(&p, o->out);
    say_figures(s, o, &f);
    picture_free(&p);
}

#endif /* PICK_DRAW_H */
