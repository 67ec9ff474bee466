/* fast_math.c - calls as a user makes them, for tests/quality/flags/run.sh: built with and without
   -ffast-math, the implementation in one file (-DFAST_MATH_IMPLEMENTATION), the walks in another
   one. Every such program prints the same lines.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifdef FAST_MATH_IMPLEMENTATION
#define UGRID_IMPLEMENTATION
#define LBVH_IMPLEMENTATION
#define NLIST_IMPLEMENTATION
#define NBODY_IMPLEMENTATION
#endif
#include "ugrid.h"
#include "lbvh.h"
#include "nlist.h"
#include "nbody.h"

#if !defined(FAST_MATH_IMPLEMENTATION) || defined(FAST_MATH_ONE_FILE)

#include <stdio.h>

enum { N = 900 };

static float pos[3 * N], boxes[6 * N];

/* Sums of bits do not depend on flags, nor on the order of the hits. */
static unsigned long hash;
static void put(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    hash += (bits ^ bits >> 15) * 2654435761ul % 4294967291ul;
}
static void line(const char *name)
{
    printf("%s %lu\n", name, hash);
    hash = 0;
}

/* NaN, or infinity: by bits, as no constant means it under the flag. */
static float special(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Multiples of 1/4096 between 0 and 1, shifted by whole periods here and there. */
static void fill(void)
{
    uint32_t seed = 1;
    int i;
    for (i = 0; i < 3 * N; i++) {
        seed = seed * 1664525u + 1013904223u;
        pos[i] = (float)(seed >> 20) / 4096 + (i % 41 == 0 ? 3.0f : 0.0f);
    }
    for (i = 0; i < 6 * N; i++) {
        float const low = pos[i / 6 * 3 + i % 3];
        boxes[i] = i % 6 < 3 ? low : low + 0.0625f;
    }
}

static void search_grid(int periodic, ugrid_method method)
{
    ugrid grid = {0};
    ugrid_desc desc = {0};
    float const radius = 0.1f;
    int32_t place;
    int a;
    for (a = 0; a < 3; a++) {
        desc.max[a] = periodic ? 0.7f : 4.0f;
        desc.periodic[a] = periodic;
    }
    desc.cell = radius;
    desc.method = method;
    if (ugrid_build(&grid, &desc, pos, 0, N) != UGRID_OK) printf("no grid\n");
    for (place = 0; place < grid.n; place++) {
        float p[3], q[3], d[3];
        ugrid_near walk = ugrid_near_half(&grid, place, radius);
        ugrid_point(&grid, place, p);
        while (ugrid_next(&walk)) {
            float d2;
            ugrid_point(&grid, walk.place, q);
            d2 = ugrid_distance2(&grid, p, q);
            ugrid_offset(&grid, pos + 3 * ugrid_id(&grid, place), pos + 3 * walk.id, d);
            put(d2);
            put(d[0] < 0 ? -d[0] : d[0]);
            if (d2 <= radius * radius) hash += 7;
        }
    }
    line(periodic ? "periodic grid" : "grid");
    ugrid_free(&grid);
}

static void search_tree(void)
{
    lbvh tree = {0};
    float const direction[3] = {0.3f, 0.0f, -0.7f};
    int i;
    if (lbvh_build(&tree, NULL, boxes, 0, N) != LBVH_OK) printf("no tree\n");
    for (i = 0; i < N; i++) {
        lbvh_overlap box = lbvh_overlap_box(&tree, boxes + 6 * i);
        lbvh_overlap sphere = lbvh_overlap_sphere(&tree, pos + 3 * i, 0.1f);
        lbvh_near near = lbvh_near_point(&tree, pos + 3 * i, 0.2f);
        lbvh_ray ray = lbvh_ray_cast(&tree, pos + 3 * i, direction, special(0x7F800000u));
        while (lbvh_next(&box)) hash += (unsigned long)box.id;
        while (lbvh_next(&sphere)) hash += 3 * (unsigned long)sphere.id;
        while (lbvh_next_near(&near)) put(near.distance2);
        while (lbvh_next_ray(&ray)) put(ray.t);
    }
    line("tree");
    lbvh_free(&tree);
}

static void search_list(void)
{
    nlist list = {0};
    nlist_desc desc = {0};
    int a;
    int32_t i;
    for (a = 0; a < 3; a++) {
        desc.max[a] = 0.7f;
        desc.periodic[a] = 1;
    }
    desc.radius = 0.1f;
    if (nlist_build_brute(&list, &desc, pos, 0, N) != NLIST_OK) printf("no list\n");
    for (i = 0; i < N; i++) {
        nlist_each e = nlist_of(&list, i);
        while (nlist_next(&e)) {
            float d[3];
            nlist_offset(&list, pos + 3 * i, pos + 3 * e.id, d);
            for (a = 0; a < 3; a++) put(d[a]);
        }
    }
    line("list");
    nlist_free(&list);
}

static void attract(void)
{
    static float acc[2 * N];
    nbody sim = {0};
    nbody_desc desc = {0};
    int i;
    nbody_result const r = nbody_accelerations(&sim, &desc, pos, 0, NULL, N, acc);
    for (i = 0; i < 2 * N; i++) put(acc[i]);
    hash += (unsigned long)r;
    line("forces");
    nbody_free(&sim);
}

/* Each header names the particle with a number that is none; a walk around such a point is
   empty. */
static void refuse(uint32_t bits, int at)
{
    ugrid grid = {0};
    lbvh tree = {0};
    nlist list = {0};
    nbody sim = {0};
    ugrid_desc cells = {0};
    nlist_desc reach = {0};
    nbody_desc law = {0};
    float const kept = pos[3 * 77 + at], box = boxes[6 * 55 + 3 + at];
    float acc[2 * N], none[3] = {0, 0, 0};
    ugrid_near walk;
    int first, second, met = 0;
    none[at] = special(bits);
    cells.cell = 0.1f;
    first = ugrid_build(&grid, &cells, pos, 0, N);
    walk = ugrid_near_within(&grid, none, 0.1f);
    while (ugrid_next(&walk)) met++;
    walk = ugrid_near_within(&grid, pos, none[at]);
    while (ugrid_next(&walk)) met++;
    pos[3 * 77 + at] = none[at];
    boxes[6 * 55 + 3 + at] = none[at];
    second = ugrid_build(&grid, &cells, pos, 0, N);
    printf("grid %d %d %d, near %d;", first, second == UGRID_NOT_FINITE, grid.bad_id, met);
    second = lbvh_build(&tree, NULL, boxes, 0, N);
    printf(" tree %d %d;", second == LBVH_NOT_FINITE, tree.bad_id);
    reach.radius = 0.1f;
    second = nlist_build_brute(&list, &reach, pos, 0, N);
    printf(" list %d %d;", second == NLIST_NOT_FINITE, list.bad_id);
    second =
        nbody_accelerations(&sim, &law, at == 2 ? pos + 1 : pos, 3 * sizeof *pos, NULL, N, acc);
    printf(" bodies %d %d;", second == NBODY_NOT_FINITE, sim.bad_id);
    reach.radius = none[at];
    printf(" radius %d\n", nlist_build_brute(&list, &reach, pos, 0, N) == NLIST_BAD_RADIUS);
    pos[3 * 77 + at] = kept;
    boxes[6 * 55 + 3 + at] = box;
    ugrid_free(&grid);
    lbvh_free(&tree);
    nlist_free(&list);
    nbody_free(&sim);
}

int main(void)
{
    fill();
    search_grid(0, UGRID_AUTO);
    search_grid(1, UGRID_AUTO);
    search_grid(1, UGRID_LIST);
    search_tree();
    search_list();
    attract();
    refuse(0x7FC00000u, 1);
    refuse(0x7F800000u, 2);
    refuse(0x7FC00000u, 2);
    refuse(0xFF800000u, 0);
    return 0;
}

#endif
