/* test_threads.c - many threads at once: all of them search one object of each header, and each
   builds objects of its own.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/all/test_threads.c -o test_threads -lcmocka -lm -lpthread &&
       ./test_threads
       cc -O1 -g -fsanitize=thread ...                          (tests/quality/flags/run.sh)

   Every thread must find what one thread finds alone, bit for bit. */

#include <pthread.h>

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_PERIODIC
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

enum { THREADS = 8, N = 200, ROOM = 40 * N };

/* ------------------------------------------------------------------------------------------------
   What all of them look at
   ---------------------------------------------------------------------------------------------- */

typedef struct shared {
    int kind;
    real pos[3 * N], plane[2 * N], mass[N], acc[2 * N], values[N];
    uint32_t masks[N];
    real corner[9 * 8];
    ugrid grid;
    lbvh tree, walls;
    nlist list, contacts;
    nbody sim;
} shared;

static void must(int good) { if (!good) abort(); } /* in a thread cmocka's checks are not at home */

static void make_shared(shared *s, int kind)
{
    ugrid_desc g;
    lbvh_desc t, w;
    nlist_desc l;
    nbody_desc b;
    nlist_mesh mesh;
    wl_random r = wl_seed((uint64_t)kind);
    int32_t i;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    for (i = 0; i < 3 * N; i++) s->pos[i] = (real)wl_u(&r);
    for (i = 0; i < 2 * N; i++) s->plane[i] = (real)wl_u(&r);
    for (i = 0; i < 9 * 8; i++) s->corner[i] = (real)wl_u(&r);
    for (i = 0; i < N; i++)
        s->mass[i] = 1 + (real)wl_u(&r), s->values[i] = (real)wl_u(&r), s->masks[i] = 1u << i % 3;
    memset(&g, 0, sizeof g);
    memset(&t, 0, sizeof t);
    memset(&w, 0, sizeof w);
    memset(&l, 0, sizeof l);
    memset(&b, 0, sizeof b);
    memset(&mesh, 0, sizeof mesh);
    g.method = (ugrid_method)(kind % 6);
    g.slots = N;
    g.cell = (real)0.15;
    g.max[0] = g.max[1] = g.max[2] = 1;
    g.periodic[kind % 3] = 1;
    must(ugrid_build(&s->grid, &g, s->pos, 0, N) == UGRID_OK);
    t.kind = LBVH_POINTS;
    t.radius = (real)0.05;
    t.builder = (lbvh_builder)(kind % 3);
    t.masks = s->masks;
    must(lbvh_build(&s->tree, &t, s->pos, 0, N) == LBVH_OK);
    w.kind = LBVH_TRIANGLES;
    must(lbvh_build(&s->walls, &w, s->corner, 0, 8) == LBVH_OK);
    l.radius = (real)0.15;
    l.skin = (real)0.01;
    l.layout = (nlist_layout)(kind % 4);
    l.width = l.layout == NLIST_STATIC ? N : l.layout == NLIST_HYBRID ? 3 : 0;
    l.half = kind / 2 % 2;
    l.history = 8;
    must(nlist_build_ugrid(&s->list, &l, &s->grid, s->pos, 0, N) == NLIST_OK);
    for (i = 0; i < N; i++) {
        nlist_each e = nlist_of(&s->list, i);
        while (nlist_next(&e)) oracle_write(e.history, 8, (uint32_t)(100 * i + e.id));
    }
    memset(&l, 0, sizeof l);
    l.radius = (real)0.2;
    l.layout = NLIST_DYNAMIC;
    mesh.vertices = s->corner;
    mesh.triangles = 8;
    must(nlist_build_mesh(&s->contacts, &l, &s->walls, &mesh, s->pos, 0, N) == NLIST_OK);
    b.method = (nbody_method)(1 + kind % 3);
    b.leaf = b.method == NBODY_DIRECT ? 0 : 6;
    must(nbody_accelerations(&s->sim, &b, s->plane, 0, s->mass, N, s->acc) == NBODY_OK);
}

static void free_shared(shared *s)
{
    ugrid_free(&s->grid);
    lbvh_free(&s->tree);
    lbvh_free(&s->walls);
    nlist_free(&s->list);
    nlist_free(&s->contacts);
    nbody_free(&s->sim);
}

/* ------------------------------------------------------------------------------------------------
   What a thread finds
   ---------------------------------------------------------------------------------------------- */

/* Room for answers, and a sum of all of them. */
typedef struct finder {
    const shared *s;
    int first;                  /* which search comes first, so that threads meet in all of them */
    uint64_t sum[8];
    int64_t offsets[N + 1];
    int32_t ids[2 * ROOM];
    real numbers[3 * N];
    char *bytes;
} finder;

static uint64_t search_grid(finder *f)
{
    const ugrid *g = &f->s->grid;
    real const radius = (real)0.15;
    uint64_t sum = 1;
    int64_t needed, pairs;
    int32_t i, found;
    for (i = 0; i < N; i += 3) {
        ugrid_near walk = ugrid_near_point(g, f->s->pos + 3 * i);
        while (ugrid_next(&walk)) MIX(sum, &walk.id, 1);
        must(ugrid_query(g, f->s->pos + 3 * i, radius, f->ids, ROOM, &found) == UGRID_OK);
        MIX(sum, f->ids, found);
    }
    must(ugrid_count_pairs(g, radius, &pairs) == UGRID_OK);
    MIX(sum, &pairs, 1);
    must(ugrid_neighbors(g, radius, UGRID_HALF, f->offsets, f->ids, ROOM, &needed) == UGRID_OK);
    MIX(sum, f->ids, needed);
    must(ugrid_neighbors(g, radius, UGRID_PLACES, f->offsets, f->ids, ROOM, &needed) == UGRID_OK);
    MIX(sum, f->ids, needed);
    must(ugrid_neighbors_at(g, f->s->pos + 3, 0, N / 2, radius, f->offsets, f->ids, ROOM,
                            &needed) == UGRID_OK);
    MIX(sum, f->ids, needed);
    must(ugrid_count_neighbors(g, radius, 0, f->ids) == UGRID_OK);
    MIX(sum, f->ids, N);
    must(ugrid_gather(g, f->s->mass, sizeof(real), f->numbers) == UGRID_OK);
    MIX(sum, f->numbers, N);
    must(ugrid_scatter(g, f->s->mass, sizeof(real), f->numbers) == UGRID_OK);
    MIX(sum, f->numbers, N);
    must(ugrid_cell_sums(g, f->s->values, 1, (real *)(void *)f->bytes) == UGRID_OK);
    MIX(sum, f->bytes, g->cell_count * (int)sizeof(real));
    must(ugrid_validate(g) == UGRID_OK);
    return sum;
}

static int add_pair(void *user, int32_t i, int32_t j)
{
    uint64_t *sum = (uint64_t *)user;
    *sum = mix(mix(*sum, &i, sizeof i), &j, sizeof j);
    return 0;
}

static uint64_t each_pair(finder *f)
{
    uint64_t sum = 1;
    must(ugrid_each_pair(&f->s->grid, (real)0.1, UGRID_HALF, add_pair, &sum) == UGRID_OK);
    must(lbvh_each_pair(&f->s->tree, add_pair, &sum) == LBVH_OK);
    return sum;
}

static uint64_t search_tree(finder *f)
{
    const lbvh *t = &f->s->tree;
    uint64_t sum = 1;
    int64_t needed, pairs;
    int32_t i, found;
    lbvh_queries q;
    lbvh_quality quality;
    real const window[6] = {(real)0.1, (real)0.2, (real)0.3, (real)0.6, (real)0.7, (real)0.8},
               ahead[3] = {1, (real)0.5, (real)0.25};
    lbvh_overlap o = lbvh_overlap_box(t, window);
    memset(&q, 0, sizeof q);
    while (lbvh_next(&o)) MIX(sum, &o.id, 1);
    for (i = 0; i < N; i += 9) {
        lbvh_ray ray = lbvh_ray_cast(t, f->s->pos + 3 * i, ahead, 2);
        while (lbvh_next_ray(&ray)) MIX(sum, &ray.id, 1);
        must(lbvh_nearest(t, f->s->pos + 3 * i, 7, 1, NULL, NULL, f->ids, f->numbers, &found) ==
             LBVH_OK);
        MIX(sum, f->ids, found);
        MIX(sum, f->numbers, found);
    }
    must(lbvh_count_pairs(t, &pairs) == LBVH_OK);
    must(lbvh_pairs(t, f->ids, ROOM, &needed) == LBVH_OK && needed == pairs);
    MIX(sum, f->ids, 2 * needed);
    must(lbvh_overlaps(t, &q, f->offsets, f->ids, ROOM, &needed) == LBVH_OK);
    MIX(sum, f->ids, needed);
    q.kind = LBVH_POINTS;
    q.radius = (real)0.1;
    q.data = f->s->pos;
    q.n = N;
    q.filter = 3;
    must(lbvh_count_overlaps(t, &q, f->ids) == LBVH_OK);
    MIX(sum, f->ids, N);
    must(lbvh_measure(t, &quality) == LBVH_OK);
    MIX(sum, &quality.sah, 1);
    must(lbvh_save(t, f->bytes, 16 * ROOM, &needed) == LBVH_OK);
    MIX(sum, f->bytes, needed);
    must(lbvh_validate(t) == LBVH_OK);
    return sum;
}

static uint64_t read_lists(finder *f)
{
    const nlist *l = &f->s->list;
    uint64_t sum = 1;
    int64_t needed;
    int32_t i, moved;
    for (i = 0; i < N; i++) {
        nlist_each e = nlist_of(l, i), c = nlist_of(&f->s->contacts, i);
        while (nlist_next(&e)) sum = mix(mix(sum, &e.id, sizeof e.id), e.history, 8);
        while (nlist_next(&c)) MIX(sum, &c.id, 1);
    }
    must(nlist_pairs(l, f->ids, ROOM, &needed, NULL, 0, NULL) == NLIST_OK);
    MIX(sum, f->ids, 2 * needed);
    must(nlist_moved(l, f->s->pos, 0, &moved) == NLIST_OK && !moved);
    must(nlist_save(l, f->bytes, 32 * ROOM, &needed) == NLIST_OK);
    MIX(sum, f->bytes, needed);
    must(nlist_validate(l) == NLIST_OK && nlist_validate(&f->s->contacts) == NLIST_OK);
    return sum;
}

static uint64_t ask_bodies(finder *f)
{
    const nbody *b = &f->s->sim;
    uint64_t sum = 1;
    nbody_error error;
    nbody_counts cost;
    nbody_energies energies;
    nbody_bodies bodies;
    int32_t bad;
    must(nbody_fields_at(b, f->s->plane, 0, 40, f->numbers, f->numbers + 2 * N, &bad) == NBODY_OK);
    MIX(sum, f->numbers, 80);
    MIX(sum, f->numbers + 2 * N, 40);
    must(nbody_estimate(b, f->s->acc, 20, 1, &error) == NBODY_OK);
    MIX(sum, &error.mean, 1);
    must(nbody_count(b, &cost) == NBODY_OK);
    MIX(sum, &cost.near_terms, 1);
    memset(&bodies, 0, sizeof bodies);
    memcpy(f->numbers, f->s->plane, sizeof f->s->plane);
    bodies.pos = bodies.vel = bodies.acc = f->numbers;
    bodies.mass = f->s->mass;
    bodies.n = N;
    must(nbody_energy(&bodies, NULL, &energies) == NBODY_OK);
    MIX(sum, &energies.kinetic, 1);
    must(nbody_validate(b) == NBODY_OK);
    return sum;
}

typedef uint64_t search_fn(finder *f);
static search_fn *const searches[] = {search_grid, each_pair, search_tree, read_lists, ask_bodies};

static void *search_all(void *user)
{
    finder *f = (finder *)user;
    int k;
    for (k = 0; k < COUNT_OF(searches); k++) {
        int const which = (k + f->first) % COUNT_OF(searches);
        f->sum[which] = searches[which](f);
    }
    return NULL;
}

/* Builds everything, larger and smaller, then searches it. */
static void *build_and_search(void *user)
{
    finder *f = (finder *)user;
    shared *own = (shared *)malloc(sizeof *own);
    int round, k;
    must(own != NULL);
    for (round = 0; round < 2; round++) {
        make_shared(own, f->s->kind);
        f->s = own;
        (void)search_all(f);
        for (k = 0; k < 6; k++) { /* rows of another state, in the same memory */
            int32_t names[N], i;
            for (i = 0; i < N; i++) names[i] = (i + k) % N;
            must(nlist_remap(&own->list, names, N) == NLIST_OK);
            must(ugrid_build(&own->grid, &own->grid.desc, own->pos, 0, N / (k + 1)) == UGRID_OK);
            must(lbvh_refit(&own->tree, own->pos, 0) == LBVH_OK);
            must(nbody_build(&own->sim, &own->sim.desc, own->plane, 0, own->mass, N / (k + 1)) ==
                 NBODY_OK);
        }
        free_shared(own);
    }
    free(own);
    return NULL;
}

static finder *new_finder(const shared *s, int first)
{
    finder *f = NEW(finder, 1);
    f->s = s;
    f->first = first;
    f->bytes = NEW(char, 32 * ROOM);
    return f;
}

static void free_finder(finder *f)
{
    free(f->bytes);
    free(f);
}

static void with_threads(void *(*work)(void *), int kind)
{
    shared *s = NEW(shared, 1);
    finder *alone, *f[THREADS];
    pthread_t thread[THREADS];
    int k, which;
    make_shared(s, kind);
    alone = new_finder(s, 0);
    (void)search_all(alone);
    for (k = 0; k < THREADS; k++) {
        f[k] = new_finder(s, k);
        CHECK(pthread_create(&thread[k], NULL, work, f[k]) == 0);
    }
    for (k = 0; k < THREADS; k++) {
        CHECK(pthread_join(thread[k], NULL) == 0);
        for (which = 0; which < COUNT_OF(searches); which++)
            CHECK(f[k]->sum[which] == alone->sum[which]);
        free_finder(f[k]);
    }
    free_finder(alone);
    free_shared(s);
    free(s);
}

static void test_search_one(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < (small_run() ? 1 : SANITIZED ? 4 : 12); k++)
        with_threads(search_all, 5 * k % 12);
}

static void test_build_many(void **state)
{
    int k;
    (void)state;
    for (k = 0; k < (small_run() ? 1 : SANITIZED ? 4 : 12); k++)
        with_threads(build_and_search, 5 * k % 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_search_one),
        TEST(test_build_many),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
