/* scene_galaxy.h - two discs of bodies, by nbody.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_GALAXY_H
#define SCENE_GALAXY_H

/* -------------------------------------------------------------------------------------------------
   >>galaxy: two discs pass each other. The last body is the mouse: without mass until its button is
   pressed. Setting: softening, 0.02 .. 0.2.
   ---------------------------------------------------------------------------------------------- */

static struct galaxy {
    nbody sim;
    nbody_desc desc;
    nbody_bodies bodies;
    float *mass;
} galaxy;

#define GALAXY_HEART 0.8f   /* part of a disc's mass that is one heavy body in its middle */

/* A unit of length on the page. */
static float galaxy_scale(void) { return page.wide < page.high ? 1.7f : 2.2f; }

static void galaxy_end(void)
{
    nbody_free(&galaxy.sim);
    free(galaxy.bodies.pos);
    free(galaxy.bodies.vel);
    free(galaxy.bodies.acc);
    free(galaxy.mass);
    memset(&galaxy, 0, sizeof galaxy);
}

/* Bodies first .. first + n - 1 around (0, 0), on circles for the force that really acts there. */
static nbody_result galaxy_disc(int32_t first, int32_t n, float mass, float radius, float spin)
{
    float *pos = galaxy.bodies.pos + 2 * first, *vel = galaxy.bodies.vel + 2 * first,
          *acc = galaxy.bodies.acc + 2 * first;
    nbody_result result;
    int32_t i;
    for (i = 0; i < n; i++) {
        float const r = i ? radius * sqrtf(0.01f + 0.99f * web_random()) : 0,
                    angle = 6.2831853f * web_random();
        pos[2 * i] = r * cosf(angle);
        pos[2 * i + 1] = r * sinf(angle);
        galaxy.mass[first + i] = i ? (1 - GALAXY_HEART) * mass / (float)n : GALAXY_HEART * mass;
    }
    result = nbody_accelerations(&galaxy.sim, &galaxy.desc, pos, 0, galaxy.mass + first, n, acc);
    for (i = 0; i < n; i++) {
        /* a r = v^2 */
        float const x = pos[2 * i], y = pos[2 * i + 1],
                    inwards = -(acc[2 * i] * x + acc[2 * i + 1] * y);
        float const turn = i && inwards > 0 ? spin * sqrtf(inwards / (x * x + y * y)) : 0;
        vel[2 * i] = -y * turn;
        vel[2 * i + 1] = x * turn;
    }
    return result;
}

static void galaxy_shift(int32_t first, int32_t n, float x, float y, float vx, float vy)
{
    int32_t i;
    for (i = first; i < first + n; i++) {
        float *p = galaxy.bodies.pos + 2 * i, *v = galaxy.bodies.vel + 2 * i;
        p[0] += x;
        p[1] += y;
        v[0] += vx;
        v[1] += vy;
    }
}

static const char *galaxy_begin(void)
{
    size_t const size = (size_t)page.n + 1;
    int32_t const second = page.n * 3 / 8, first = page.n - second;
    nbody_result result;
    galaxy.desc.order = 2;
    galaxy.desc.softening = 0.02f + 0.18f * page.setting;
    galaxy.bodies.n = page.n + 1;
    galaxy.bodies.pos = (float *)calloc(2 * size, sizeof(float));
    galaxy.bodies.vel = (float *)calloc(2 * size, sizeof(float));
    galaxy.bodies.acc = (float *)calloc(2 * size, sizeof(float));
    galaxy.bodies.mass = galaxy.mass = (float *)calloc(size, sizeof(float));
    if (!galaxy.bodies.pos || !galaxy.bodies.vel || !galaxy.bodies.acc || !galaxy.mass) {
        galaxy_end();
        return no_memory;
    }
    result = galaxy_disc(0, first, 1, 1, 1);
    if (result == NBODY_OK && second) result = galaxy_disc(first, second, 0.6f, 0.77f, 1);
    galaxy_shift(0, first, -0.9f, 0.4f, 0.18f, -0.26f);
    galaxy_shift(first, second, 1.5f, -0.67f, -0.3f, 0.43f);
    page.size = 0.02f;
    return result == NBODY_OK ? NULL : nbody_result_text(result);
}

static const char *galaxy_go(void)
{
    int32_t const last = page.n, second = page.n - page.n * 3 / 8;
    nbody_counts counts;
    nbody_result result;
    int32_t i;
    galaxy.bodies.pos[2 * last] = (page.mouse.x - page.wide / 2) / galaxy_scale();
    galaxy.bodies.pos[2 * last + 1] = (page.mouse.y - page.high / 2) / galaxy_scale();
    galaxy.bodies.vel[2 * last] = galaxy.bodies.vel[2 * last + 1] = 0;
    /* the forces have changed */
    if (page.mouse.down || galaxy.mass[last] > 0) galaxy.bodies.fresh = 0;
    galaxy.mass[last] = page.mouse.down ? 1.0f : 0;
    result = nbody_step(&galaxy.sim, &galaxy.desc, &galaxy.bodies, 0.01f, NBODY_LEAPFROG);
    if (result == NBODY_OK) result = nbody_count(&galaxy.sim, &counts);
    if (result != NBODY_OK) return nbody_result_text(result);
    page.figure = (double)counts.near_terms / galaxy.bodies.n - 1;
    for (i = 0; i < page.n; i++) {
        const float *p = galaxy.bodies.pos + 2 * i, *v = galaxy.bodies.vel + 2 * i;
        float const speed = sqrtf(v[0] * v[0] + v[1] * v[1]);
        web_put(i, page.wide / 2 + galaxy_scale() * p[0], page.high / 2 + galaxy_scale() * p[1],
                i < second ? -speed : speed, 0);
    }
    return NULL;
}

#endif /* SCENE_GALAXY_H */
