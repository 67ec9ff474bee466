/* coating_serial.h - the searches of coating.c for all rays of a burst, and their times.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef COATING_SERIAL_H
#define COATING_SERIAL_H

/* What one run needs; only the search that is used has memory. */
typedef struct coat_serial {
    coating *coating;
    dem_real *rays, *boxes;     /* [6 rays], [6 n] */
    coat_hit *hits;             /* [rays] */
    lbvh_ray_hit *wide_hits;    /* [rays] */
    ugrid grid;
    lbvh tree;
    lbvh_wide wide;
} coat_serial;

static coat_serial coat_serial_new(coating *c)
{
    size_t const rays = (size_t)c->spray.rays;
    coat_serial run;
    memset(&run, 0, sizeof run);
    run.coating = c;
    run.rays = (dem_real *)zeros(6 * rays, sizeof(dem_real));
    run.boxes = (dem_real *)zeros(6 * (size_t)c->bed->bodies.base.n, sizeof(dem_real));
    run.hits = (coat_hit *)zeros(rays, sizeof *run.hits);
    run.wide_hits = (lbvh_ray_hit *)zeros(rays, sizeof *run.wide_hits);
    return run;
}

/* And what it coats. */
static void coat_serial_free(coat_serial *run)
{
    scene_free(run->coating->bed);
    free(run->coating->count);
    free(run->rays);
    free(run->boxes);
    free(run->hits);
    free(run->wide_hits);
    ugrid_free(&run->grid);
    lbvh_free(&run->tree);
    lbvh_wide_free(&run->wide);
}

/* -------------------------------------------------------------------------------------------------
   >>searches: grid or tree over the particles as they lie; then the closest hits of all rays
   ---------------------------------------------------------------------------------------------- */

static void coat_prepare(coat_serial *run, int search)
{
    const dem_bodies *b = &run->coating->bed->bodies;
    ugrid_desc const desc = coat_grid_desc(run->coating->bed, search == COAT_LOOSE);
    lbvh_wide_desc wide;
    int32_t i;
    if (search == COAT_LOOSE || search == COAT_TIGHT)
        MUST(ugrid, ugrid_build(&run->grid, &desc, b->base.pos, DEM_STRIDE, b->base.n), "the grid");
    if (search != COAT_TREE && search != COAT_WIDE) return;
    for (i = 0; i < b->base.n; i++) coat_box(b, i, run->boxes + 6 * (size_t)i);
    MUST(lbvh, lbvh_build(&run->tree, NULL, run->boxes, 0, b->base.n), "the tree");
    memset(&wide, 0, sizeof wide);
    wide.leaf = 1; /* a particle is dearer to test than its box */
    if (search == COAT_WIDE)
        MUST(lbvh, lbvh_wide_build(&run->wide, &wide, &run->tree, NULL, 0), "the wide tree");
}

static coat_hit coat_by_all(const dem_bodies *bodies, const dem_real *ray)
{
    coat_hit best = coat_no_hit();
    int32_t i;
    for (i = 0; i < bodies->base.n; i++) coat_test(bodies, i, ray, &best);
    return best;
}

typedef struct coat_wide_user {
    const dem_bodies *bodies;
    int64_t tests;
} coat_wide_user;

/* For lbvh_closest_hits: the wide tree walks, this tests. */
static int coat_ray_fn(void *user, int32_t id, const dem_real *origin, const dem_real *direction,
                       dem_real *t, dem_real *u, dem_real *v)
{
    coat_wide_user *wide = (coat_wide_user *)user;
    coat_hit best = coat_no_hit();
    dem_real ray[6];
    memcpy(ray, origin, 3 * sizeof *ray);
    memcpy(ray + 3, direction, 3 * sizeof *ray);
    coat_test(wide->bodies, id, ray, &best);
    wide->tests++;
    *t = best.t;
    *u = *v = 0;
    return best.id >= 0;
}

/* All rays at once; tests are known of all together. */
static void coat_by_wide(coat_serial *run)
{
    int32_t const n = run->coating->spray.rays;
    coat_wide_user user = {&run->coating->bed->bodies, 0};
    lbvh_rays rays;
    int32_t r;
    memset(&rays, 0, sizeof rays);
    rays.data = run->rays;
    rays.n = n;
    MUST(lbvh, lbvh_closest_hits(&run->wide, &rays, coat_ray_fn, &user, run->wide_hits), "rays");
    for (r = 0; r < n; r++) {
        run->hits[r] = coat_no_hit();
        run->hits[r].id = run->wide_hits[r].id;
        if (run->hits[r].id >= 0) run->hits[r].t = run->wide_hits[r].t;
        run->hits[r].tests = (int32_t)((r + 1) * user.tests / n - r * user.tests / n);
    }
}

static void coat_find(coat_serial *run, int search)
{
    const dem_bodies *b = &run->coating->bed->bodies;
    int32_t r;
    if (search == COAT_WIDE) {
        coat_by_wide(run);
        return;
    }
    for (r = 0; r < run->coating->spray.rays; r++) {
        const dem_real *ray = run->rays + 6 * (size_t)r;
        run->hits[r] = search == COAT_BRUTE  ? coat_by_all(b, ray)
                       : search == COAT_TREE ? coat_by_tree(&run->tree, b, ray)
                                             : coat_by_grid(&run->grid, b, search == COAT_LOOSE,
                                                            ray);
    }
}

static void coat_make_rays(coat_serial *run, int64_t burst)
{
    int32_t r;
    for (r = 0; r < run->coating->spray.rays; r++)
        coat_ray(&run->coating->spray, burst, r, run->rays + 6 * (size_t)r);
}

/* Each ray deposits its mass. */
static void coat_burst(coat_serial *run)
{
    coating *c = run->coating;
    int32_t r;
    coat_make_rays(run, c->bursts++);
    coat_prepare(run, c->search);
    coat_find(run, c->search);
    for (r = 0; r < c->spray.rays; r++) c->count[1 + run->hits[r].id]++;
}

/* -------------------------------------------------------------------------------------------------
   >>times
   ---------------------------------------------------------------------------------------------- */

enum { COAT_ROUNDS = 9 };
typedef struct coat_cost {
    double build[COAT_ROUNDS], find[COAT_ROUNDS];   /* seconds */
    double tests, cells;        /* per ray */
    int64_t differ;             /* rays with another hit than by brute force */
} coat_cost;

/* By brute force once, where that is long. */
static void coat_measure(coat_serial *run, int search, int round, const coat_hit *truth,
                         coat_cost *cost)
{
    double const n = run->coating->spray.rays, start = processor_seconds();
    double middle;
    int32_t r;
    if (search == COAT_BRUTE && round) {
        cost->build[round] = cost->build[0];
        cost->find[round] = cost->find[0];
        return;
    }
    coat_prepare(run, search);
    middle = processor_seconds();
    coat_find(run, search);
    cost->find[round] = processor_seconds() - middle;
    cost->build[round] = middle - start;
    cost->tests = cost->cells = 0;
    cost->differ = 0;
    for (r = 0; r < run->coating->spray.rays; r++) {
        const coat_hit *hit = &run->hits[r];
        cost->tests += hit->tests / n;
        cost->cells += hit->cells / n;
        cost->differ += truth[r].id != hit->id || truth[r].t < hit->t || truth[r].t > hit->t;
    }
}

/* The rays of the next burst on the bed as it lies; all searches take turns. Medians. */
static void coat_print_times(coat_serial *run)
{
    size_t const rays = (size_t)run->coating->spray.rays;
    coat_hit *truth = (coat_hit *)zeros(rays, sizeof *truth);
    coat_cost *cost = (coat_cost *)zeros(COAT_SEARCHES, sizeof *cost);
    int round, k;
    coat_make_rays(run, run->coating->bursts);
    coat_find(run, COAT_BRUTE);
    memcpy(truth, run->hits, rays * sizeof *truth);
    for (round = 0; round < COAT_ROUNDS; round++)
        for (k = 0; k < COAT_SEARCHES; k++) coat_measure(run, k, round, truth, &cost[k]);
    puts("search, build us, ns per ray, particles tested and cells per ray, rays that differ:");
    for (k = 0; k < COAT_SEARCHES; k++)
        printf("time: %-6s %9.1f %9.1f %8.2f %7.2f %ld\n", coat_searches[k].name,
               1e6 * median(cost[k].build, COAT_ROUNDS),
               1e9 * median(cost[k].find, COAT_ROUNDS) / (double)rays, cost[k].tests,
               cost[k].cells, (long)cost[k].differ);
    free(truth);
    free(cost);
}

#endif /* COATING_SERIAL_H */
