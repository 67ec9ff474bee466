/* scene_dam.h - a dam break in the plane, by ugrid.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_DAM_H
#define SCENE_DAM_H

/* -------------------------------------------------------------------------------------------------
   >>dam: discs burst out of the left part of a box. Lengths are in diameters, masses are 1, a step
   takes a time of 1. Setting: how much of the box they fill, 15 .. 60 %.
   ---------------------------------------------------------------------------------------------- */

static struct dam {
    ugrid grid;
    float box[2], scale, gravity;   /* scale: a diameter on the page */
    float *pos, *vel, *force;       /* [2 n] */
} dam;

#define DAM_SPRING  0.3f
#define DAM_DASHPOT 0.12f
#define DAM_SHEAR   0.01f

static void dam_end(void)
{
    ugrid_free(&dam.grid);
    free(dam.pos);
    free(dam.vel);
    free(dam.force);
    memset(&dam, 0, sizeof dam);
}

static const char *dam_begin(void)
{
    float const part = 0.15f + 0.45f * page.setting;
    int32_t i, column;
    dam.scale = sqrtf(part * page.wide * page.high / (float)page.n);
    dam.box[0] = page.wide / dam.scale;
    dam.box[1] = page.high / dam.scale;
    /* a column as high as the box presses its lowest disc by a quarter */
    dam.gravity = 0.25f * DAM_SPRING / dam.box[1];
    dam.pos = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    dam.vel = (float *)calloc(2 * (size_t)page.n, sizeof(float));
    dam.force = (float *)malloc(2 * (size_t)page.n * sizeof(float));
    if (!dam.pos || !dam.vel || !dam.force) { dam_end(); return no_memory; }
    column = (int32_t)dam.box[1] > 1 ? (int32_t)dam.box[1] : 1;
    for (i = 0; i < page.n; i++) {
        dam.pos[2 * i] = (float)(i / column) + 0.5f + 0.05f * web_random();
        dam.pos[2 * i + 1] = (float)(i % column) + 0.5f + 0.05f * web_random();
    }
    page.size = dam.scale / 2;
    return NULL;
}

/* Two discs that touch push each other apart, and lose speed against each other. */
static void dam_touch(int32_t i, int32_t j, const float d[3], float d2)
{
    float const distance = sqrtf(d2), inverse = distance > 0 ? 1 / distance : 0;
    float const n[2] = {d[0] * inverse, d[1] * inverse};
    float const u[2] = {dam.vel[2 * j] - dam.vel[2 * i], dam.vel[2 * j + 1] - dam.vel[2 * i + 1]};
    float const along = u[0] * n[0] + u[1] * n[1],
                normal = DAM_DASHPOT * along - DAM_SPRING * (1 - distance);
    int a;
    for (a = 0; a < 2; a++) {
        float const force = normal * n[a] + DAM_SHEAR * (u[a] - along * n[a]);
        dam.force[2 * i + a] += force;
        dam.force[2 * j + a] -= force;
    }
}

/* Each pair once, in a half walk. */
static double dam_forces(void)
{
    int32_t place, pairs = 0;
    memset(dam.force, 0, 2 * (size_t)page.n * sizeof(float));
    for (place = 0; place < page.n; place++) {
        ugrid_near near = ugrid_near_half(&dam.grid, place, 1);
        int32_t const i = ugrid_id(&dam.grid, place);
        float p[3], d[3];
        int32_t k;
        ugrid_point(&dam.grid, place, p);
        while (ugrid_next_range(&near))
            for (k = near.begin; k < near.end; k++) {
                const ugrid_record *other = &dam.grid.record[k];
                float d2;
                d[0] = other->x[0] - p[0];
                d[1] = other->x[1] - p[1];
                d2 = d[0] * d[0] + d[1] * d[1];
                if (d2 >= 1) continue;
                dam_touch(i, other->link, d, d2);
                pairs++;
            }
    }
    return 2.0 * pairs / page.n;
}

static void dam_move(int32_t i)
{
    float *p = dam.pos + 2 * i, *v = dam.vel + 2 * i;
    float const away[2] = {p[0] - page.mouse.x / dam.scale, p[1] - page.mouse.y / dam.scale},
                reach = 1.2f / dam.scale;
    float const distance = sqrtf(away[0] * away[0] + away[1] * away[1]);
    int a;
    v[1] -= dam.gravity;
    for (a = 0; a < 2; a++) {
        v[a] += dam.force[2 * i + a];
        if (page.mouse.down && distance < reach && distance > 0)
            v[a] += 20 * dam.gravity * (1 - distance / reach) * away[a] / distance;
        if (v[a] > 0.3f) v[a] = 0.3f;       /* no disc passes through another in a step */
        if (v[a] < -0.3f) v[a] = -0.3f;
        p[a] += v[a];
        if (p[a] < 0.5f) { p[a] = 0.5f; v[a] *= -0.5f; }
        if (p[a] > dam.box[a] - 0.5f) { p[a] = dam.box[a] - 0.5f; v[a] *= -0.5f; }
    }
}

static const char *dam_go(void)
{
    float const fast = sqrtf(2 * dam.gravity * dam.box[1]); /* from the top to the bottom */
    ugrid_desc desc;
    ugrid_result result;
    int32_t i;
    memset(&desc, 0, sizeof desc);
    desc.dim = 2;
    desc.max[0] = dam.box[0];
    desc.max[1] = dam.box[1];
    desc.cell = 1;
    desc.method = UGRID_COUNT;
    result = ugrid_build(&dam.grid, &desc, dam.pos, 0, page.n);
    if (result != UGRID_OK) return ugrid_result_text(result);
    page.figure = dam_forces();
    for (i = 0; i < page.n; i++) {
        dam_move(i);
        web_put(i, dam.scale * dam.pos[2 * i], dam.scale * dam.pos[2 * i + 1],
                dam.vel[2 * i] / fast, dam.vel[2 * i + 1] / fast);
    }
    return NULL;
}

#endif /* SCENE_DAM_H */
