/* scene_boids.h - the flock of ../boids.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_BOIDS_H
#define SCENE_BOIDS_H

/* -------------------------------------------------------------------------------------------------
   >>boids. Setting: how many others each would see if they were spread evenly, 4 .. 40.
   ---------------------------------------------------------------------------------------------- */

static boids_flock flock;

static const char *boids_begin(void)
{
    boids_model model = boids_model_of(page.n, 4 + 36 * page.setting);
    float const area = model.box[0] * model.box[1];
    model.box[0] = sqrtf(area * page.wide / page.high);     /* as wide and high as the page */
    model.box[1] = area / model.box[0];
    return boids_start(&flock, &model, page.n, 1) ? NULL : no_memory;
}

static const char *boids_go(void)
{
    float const scale = page.wide / flock.model.box[0];
    ugrid_result result;
    int32_t i;
    flock.model.hunted = page.mouse.over;
    flock.model.predator[0] = page.mouse.x / scale;
    flock.model.predator[1] = page.mouse.y / scale;
    result = boids_step(&flock);
    if (result != UGRID_OK) return ugrid_result_text(result);
    for (i = 0; i < page.n; i++) {
        const float *p = flock.pos + 2 * (size_t)i, *v = flock.vel + 2 * (size_t)i;
        web_put(flock.id[i], scale * p[0], scale * p[1], v[0] / BOIDS_FAST, v[1] / BOIDS_FAST);
    }
    page.size = 0.3f * scale;
    page.figure = (double)flock.near / page.n;
    return NULL;
}

static void boids_end(void) { boids_free(&flock); }

#endif /* SCENE_BOIDS_H */
