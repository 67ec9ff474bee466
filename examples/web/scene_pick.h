/* scene_pick.h - a knot of triangles, drawn and picked at by rays, by lbvh.h, for nearfield.c.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef SCENE_PICK_H
#define SCENE_PICK_H

/* -------------------------------------------------------------------------------------------------
   >>pick: n triangles in a wide tree. A step casts a ray through each pixel, from where one hits
   another one to the sun, and one through the mouse: its triangle is the picked one. Setting: the
   picture is 160 .. 640 pixels wide; page.level: how fast the knot turns. Points: the picked
   triangle {number or -1, distance, the weights of its second and third corner}, then the three
   corners.
   ---------------------------------------------------------------------------------------------- */

#define PICK_FAR 9.0f       /* from the eye to the middle of the knot */

static struct pick {
    lbvh_wide tree;
    float *vertex, *ray, *sun_ray;  /* [3 vertices]; [6 pixels]: origin and direction */
    int32_t *index, *pixel;         /* [3 n] corners; pixels of sun_ray */
    lbvh_ray_hit *hit;              /* [pixels] */
    uint8_t *dark;                  /* [pixels] of sun_ray: something is before the sun */
    uint32_t *picture;              /* [pixels], RGBA */
    int32_t triangles, wide_by, high_by, dragged;
    float turn, tilt, from[2];
    float ahead[3], right[3], up[3], sun[3];
} pick;

static void pick_end(void)
{
    lbvh_wide_free(&pick.tree);
    free(pick.vertex);
    free(pick.ray);
    free(pick.sun_ray);
    free(pick.index);
    free(pick.pixel);
    free(pick.hit);
    free(pick.dark);
    free(pick.picture);
    memset(&pick, 0, sizeof pick);
}

static float pick_dot(const float a[3], const float b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void pick_cross(const float a[3], const float b[3], float c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* The skin of a torus knot: around its line at t, by the angle s. */
static void pick_skin(float t, float s, float p[3])
{
    float const out[3] = {cosf(2 * t) * cosf(3 * t), sinf(2 * t) * cosf(3 * t), sinf(3 * t)};
    float const along[3] = {-(2 + cosf(3 * t)) * 2 * sinf(2 * t) - 3 * sinf(3 * t) * cosf(2 * t),
                            (2 + cosf(3 * t)) * 2 * cosf(2 * t) - 3 * sinf(3 * t) * sinf(2 * t),
                            3 * cosf(3 * t)};
    float side[3];
    float length;
    int a;
    pick_cross(along, out, side);
    length = sqrtf(pick_dot(side, side));
    for (a = 0; a < 3; a++)
        p[a] = (a == 0 ? 2 * cosf(2 * t) : a == 1 ? 2 * sinf(2 * t) : 0) + out[a] +
               0.45f * (cosf(s) * out[a] + sinf(s) * side[a] / length);
}

/* Rings of `around` corners each, and between two of them pairs of triangles. */
static int32_t pick_knot(int32_t rings, int32_t around)
{
    float const turn = 6.2831853f;
    int32_t r, k;
    for (r = 0; r < rings; r++)
        for (k = 0; k < around; k++) {
            int32_t const next_r = (r + 1) % rings, next_k = (k + 1) % around;
            int32_t const a = r * around + k, b = next_r * around + k,
                          c = next_r * around + next_k, d = r * around + next_k;
            int32_t const two[6] = {a, b, c, a, c, d};
            pick_skin(turn * (float)r / (float)rings, turn * (float)k / (float)around,
                      pick.vertex + 3 * a);
            memcpy(pick.index + 6 * a, two, sizeof two);
        }
    return 2 * rings * around;
}

/* A binary tree, of which the wide one is made; it has copies of the triangles. */
static lbvh_result pick_build(int32_t vertices)
{
    lbvh binary;
    lbvh_desc desc;
    lbvh_wide_desc wide;
    lbvh_result result;
    memset(&binary, 0, sizeof binary);
    memset(&desc, 0, sizeof desc);
    memset(&wide, 0, sizeof wide);
    desc.kind = LBVH_TRIANGLES;
    desc.builder = LBVH_MERGE;
    desc.indices = pick.index;
    desc.vertices = vertices;
    wide.copy = 1;
    result = lbvh_build(&binary, &desc, pick.vertex, 0, pick.triangles);
    if (result == LBVH_OK) result = lbvh_wide_build(&pick.tree, &wide, &binary, pick.vertex, 0);
    lbvh_free(&binary);
    return result;
}

static int pick_memory(int32_t vertices)
{
    size_t const pixels = (size_t)(pick.wide_by * pick.high_by), corners = 3 * (size_t)vertices;
    pick.vertex = (float *)malloc(corners * sizeof(float));
    pick.index = (int32_t *)malloc(2 * corners * sizeof(int32_t));
    pick.ray = (float *)malloc(6 * pixels * sizeof(float));
    pick.sun_ray = (float *)malloc(6 * pixels * sizeof(float));
    pick.pixel = (int32_t *)malloc(pixels * sizeof(int32_t));
    pick.hit = (lbvh_ray_hit *)malloc(pixels * sizeof *pick.hit);
    pick.dark = (uint8_t *)malloc(pixels);
    pick.picture = (uint32_t *)malloc(pixels * sizeof(uint32_t));
    return pick.vertex && pick.index && pick.ray && pick.sun_ray && pick.pixel && pick.hit &&
           pick.dark && pick.picture;
}

static const char *pick_begin(void)
{
    int32_t const around = (int32_t)sqrtf((float)page.n / 40) + 3,
                  rings = page.n / (2 * around) > 3 ? page.n / (2 * around) : 3;
    lbvh_result result = LBVH_OUT_OF_MEMORY;
    pick.wide_by = (int32_t)(160 + 480 * page.setting);
    if (page.wide < page.high) pick.wide_by = pick.wide_by * 9 / 16;
    pick.high_by = (int32_t)((float)pick.wide_by * page.high / page.wide);
    pick.tilt = 0.6f;
    if (pick_memory(rings * around)) {
        pick.triangles = pick_knot(rings, around);
        result = pick_build(rings * around);
    }
    if (result == LBVH_OK) return NULL;
    pick_end();
    return lbvh_result_text(result);
}

/* Pressed: the mouse turns the knot by hand. Else it turns by itself. */
static void pick_turn(void)
{
    float const mouse[2] = {page.mouse.x, page.mouse.y};
    if (!page.mouse.down) pick.turn += 0.005f * (float)page.level;
    if (page.mouse.down && pick.dragged) {
        pick.turn -= 0.4f * (mouse[0] - pick.from[0]);
        pick.tilt -= 0.3f * (mouse[1] - pick.from[1]);
        if (pick.tilt > 1.5f) pick.tilt = 1.5f;
        if (pick.tilt < -1.5f) pick.tilt = -1.5f;
    }
    pick.dragged = page.mouse.down;
    memcpy(pick.from, mouse, sizeof mouse);
}

/* The eye looks at the middle of the knot; a unit of the page is so long at distance 1. */
static float pick_look(void)
{
    float const c = cosf(pick.tilt), s = sinf(pick.tilt);
    float const narrow = page.wide < page.high ? page.wide : page.high + 1;
    int a;
    pick.ahead[0] = -sinf(pick.turn) * c;
    pick.ahead[1] = cosf(pick.turn) * c;
    pick.ahead[2] = -s;
    pick.right[0] = cosf(pick.turn);
    pick.right[1] = sinf(pick.turn);
    pick.right[2] = 0;
    pick_cross(pick.right, pick.ahead, pick.up);
    for (a = 0; a < 3; a++)         /* behind the eye, on the left, above */
        pick.sun[a] = -0.45f * pick.ahead[a] - 0.5f * pick.right[a] + 0.74f * pick.up[a];
    return 0.84f / narrow;
}

/* From the eye through a place of the page. */
static void pick_ray(float unit, float x, float y, float ray[6])
{
    float const across = unit * (x - page.wide / 2), above = unit * (y - page.high / 2);
    int a;
    for (a = 0; a < 3; a++) {
        ray[a] = -PICK_FAR * pick.ahead[a];
        ray[3 + a] = pick.ahead[a] + across * pick.right[a] + above * pick.up[a];
    }
}

/* The normal of a triangle, towards the eye. */
static void pick_normal(int32_t id, const float direction[3], float normal[3])
{
    const float *a = pick.vertex + 3 * pick.index[3 * id],
                *b = pick.vertex + 3 * pick.index[3 * id + 1],
                *c = pick.vertex + 3 * pick.index[3 * id + 2];
    float const ab[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]},
                ac[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    float length;
    int k;
    pick_cross(ab, ac, normal);
    length = sqrtf(pick_dot(normal, normal));
    if (pick_dot(normal, direction) > 0) length = -length;
    for (k = 0; k < 3; k++) normal[k] /= length != 0 ? length : 1;
}

/* Every pixel: a ray, and what it hits first. */
static lbvh_result pick_cast(float unit)
{
    float const step = page.wide / (float)pick.wide_by;
    lbvh_rays rays;
    int32_t x, y;
    for (y = 0; y < pick.high_by; y++)
        for (x = 0; x < pick.wide_by; x++)
            pick_ray(unit, step * ((float)x + 0.5f), page.high - step * ((float)y + 0.5f),
                     pick.ray + 6 * (y * pick.wide_by + x));
    memset(&rays, 0, sizeof rays);
    rays.data = pick.ray;
    rays.n = pick.wide_by * pick.high_by;
    rays.flags = LBVH_SORTED;
    return lbvh_closest_hits(&pick.tree, &rays, NULL, NULL, pick.hit);
}

/* Where a ray hit what faces the sun: is anything between? Writes how many rays. */
static lbvh_result pick_shadows(int32_t *count)
{
    lbvh_rays rays;
    int32_t k, n = 0;
    int a;
    for (k = 0; k < pick.wide_by * pick.high_by; k++) {
        const float *ray = pick.ray + 6 * k;
        float *to_sun = pick.sun_ray + 6 * n;
        float normal[3];
        if (pick.hit[k].id < 0) continue;
        pick_normal(pick.hit[k].id, ray + 3, normal);
        if (pick_dot(normal, pick.sun) <= 0) continue;
        for (a = 0; a < 3; a++) {
            to_sun[a] = ray[a] + pick.hit[k].t * ray[3 + a] + 1e-3f * normal[a];
            to_sun[3 + a] = pick.sun[a];
        }
        pick.pixel[n++] = k;
    }
    memset(&rays, 0, sizeof rays);
    rays.data = pick.sun_ray;
    rays.n = *count = n;
    rays.flags = LBVH_SORTED;
    return lbvh_any_hits(&pick.tree, &rays, NULL, NULL, pick.dark);
}

/* light: 0 .. 1; the picked triangle is gold. */
static uint32_t pick_color(float light, int picked)
{
    float const color[3] = {picked ? 255.0f : 92.0f, picked ? 205.0f : 150.0f,
                            picked ? 60.0f : 235.0f};
    float const part = 0.25f + 0.75f * light;
    return 0xFF000000u | (uint32_t)(part * color[2]) << 16 | (uint32_t)(part * color[1]) << 8 |
           (uint32_t)(part * color[0]);
}

static void pick_paint(int32_t picked, int32_t lit)
{
    int32_t k;
    for (k = 0; k < pick.wide_by * pick.high_by; k++)
        pick.picture[k] = pick.hit[k].id < 0 ? 0xFF110907u
                                             : pick_color(0, pick.hit[k].id == picked);
    for (k = 0; k < lit; k++) {
        int32_t const at = pick.pixel[k], id = pick.hit[at].id;
        float normal[3];
        pick_normal(id, pick.ray + 6 * at + 3, normal);
        if (!pick.dark[k])
            pick.picture[at] = pick_color(pick_dot(normal, pick.sun), id == picked);
    }
}

/* One ray: what is under the mouse, and where its corners are on the page. */
static lbvh_result pick_under_mouse(float unit, lbvh_ray_hit *hit)
{
    float ray[6];
    lbvh_rays rays;
    lbvh_result result;
    int k;
    memset(&rays, 0, sizeof rays);
    pick_ray(unit, page.mouse.x, page.mouse.y, ray);
    rays.data = ray;
    rays.n = 1;
    result = lbvh_closest_hits(&pick.tree, &rays, NULL, NULL, hit);
    if (result != LBVH_OK || !page.mouse.over) hit->id = -1;
    web_put(0, (float)hit->id, hit->t, hit->u, hit->v);
    for (k = 0; k < 3 && hit->id >= 0; k++) {
        const float *at = pick.vertex + 3 * pick.index[3 * hit->id + k];
        float const depth = unit * (PICK_FAR + pick_dot(at, pick.ahead));
        web_put(1 + k, page.wide / 2 + pick_dot(at, pick.right) / depth,
                page.high / 2 + pick_dot(at, pick.up) / depth, 0, 0);
    }
    return result;
}

static const char *pick_go(void)
{
    float unit;
    lbvh_ray_hit hit;
    lbvh_result result;
    int32_t lit = 0;
    pick_turn();
    unit = pick_look();
    result = pick_under_mouse(unit, &hit);
    if (result == LBVH_OK) result = pick_cast(unit);
    if (result == LBVH_OK) result = pick_shadows(&lit);
    if (result != LBVH_OK) return lbvh_result_text(result);
    pick_paint(hit.id, lit);
    page.figure = 1e-3 * (pick.wide_by * pick.high_by + lit + 1);
    return NULL;
}

#endif /* SCENE_PICK_H */
