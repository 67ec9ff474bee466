/* test_faults.c - whole programs that run out of memory: all four headers on one heap, which fails
   at each of its allocations in turn, once or from then on. The tests of each header have its own
   calls one by one.
   SPDX-License-Identifier: MIT OR Unlicense

       cc -O2 -I. tests/unit/all/test_faults.c -o test_faults -lcmocka -lm && ./test_faults
       (add -DUGRID_REAL=double ... -DNBODY_REAL=double for the double build; packages:
       libcmocka-dev libstb-dev)

   A program is a row of steps: build, search, build larger, refit, sort and follow, sum, save,
   load, reserve, check, free, and so on. First it runs without a failure, and what each step leaves
   behind is noted. Then, for every k, allocation number k fails; and the step that it belongs to
   - returns the code for it, and changes no other object;
   - leaves its object as it was or empty, as the comment says; what it holds is what the heap has
   given;
   - does the same again as soon as there is memory, and everything from there on is as in the first
   run, bit for bit. */

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_SETS
#define NBODY_WITH_PERIODIC
#define NBODY_IMPLEMENTATION
#include "nbody.h"
#include "../../common/nlist_oracle.h"
#include "../../common/testing.h"

/* ------------------------------------------------------------------------------------------------
   Memory that runs out
   ---------------------------------------------------------------------------------------------- */

/* Fails at allocation number fail_at; with `forever` at all after it, too, until memory is
   freed. */
typedef struct faulty { heap h; int64_t calls, fail_at, failed; int forever; } faulty;

static void *faulty_alloc(size_t bytes, void *user)
{
    faulty *f = (faulty *)user;
    f->calls++;
    if (f->fail_at && (f->forever ? f->calls >= f->fail_at : f->calls == f->fail_at)) {
        f->failed++;
        return NULL;
    }
    return heap_alloc(bytes, &f->h);
}

static void faulty_free(void *memory, size_t bytes, void *user)
{
    heap_free(memory, bytes, &((faulty *)user)->h);
}

#define TAKE_FROM(desc, f)                                                                         \
    ((desc)->allocator.alloc = faulty_alloc, (desc)->allocator.free = faulty_free,                 \
     (desc)->allocator.user = (f))

/* ------------------------------------------------------------------------------------------------
   What an object holds, as a number
   ---------------------------------------------------------------------------------------------- */

enum { START = 0x2545F491 };

static uint64_t sum_of_grid(const ugrid *g)
{
    uint64_t sum = START;
    int32_t c, s;
    MIX(sum, &g->n, 1);
    if (g->n == 0) return sum;
    if (g->start) {
        MIX(sum, g->start, g->cell_count + 1);
        MIX(sum, g->order, g->entries);
    }
    if (g->inverse) MIX(sum, g->inverse, g->n);
    for (c = 0; g->record && c < g->n; c++) {
        MIX(sum, g->record[c].x, 3);
        MIX(sum, &g->record[c].link, 1);
    }
    if (g->head) MIX(sum, g->head, g->cell_count);
    if (g->next) MIX(sum, g->next, g->n * g->spans);
    for (c = 0; g->slot && c < g->cell_count; c++) {
        MIX(sum, &g->count[c], 1);
        for (s = 0; s < g->count[c]; s++)
            MIX(sum, &g->slot[g->desc.slot_layout ? c * g->desc.slots + s : s * g->cell_count + c],
                1);
    }
    return sum;
}

static uint64_t sum_of_tree(const lbvh *t)
{
    uint64_t sum = START;
    MIX(sum, &t->n, 1);
    if (t->n == 0) return sum;
    MIX(sum, t->node, 2 * t->n - 1);
    MIX(sum, t->prefix, t->n + 1);
    if (t->mask) MIX(sum, t->mask, 2 * t->n - 1);
    if (t->code) MIX(sum, t->code, t->n);
    return sum;
}

static uint64_t sum_of_list(const nlist *list)
{
    uint64_t sum = START;
    oracle_snapshot s;
    const nlist_rows *rows = &list->rows[list->current];
    oracle_take(&s, list);
    MIX(sum, &s.n, 1);
    if (s.n) {
        MIX(sum, s.ids, arrlen(s.ids));
        MIX(sum, s.counts, arrlen(s.counts));
        MIX(sum, s.entries, arrlen(s.entries));
        MIX(sum, s.history, arrlen(s.history));
        MIX(sum, s.events, NLIST_EVENT_KINDS);
        MIX(sum, s.event, arrlen(s.event));
        if (rows->reference) MIX(sum, rows->reference, s.n * list->desc.dim);
    }
    oracle_drop_snapshot(&s);
    return sum;
}

static uint64_t sum_of_bodies(const nbody *sim)
{
    uint64_t sum = START;
    MIX(sum, &sim->n, 1);
    if (sim->n == 0) return sum;
    MIX(sum, sim->id, sim->n);
    MIX(sum, sim->x, sim->n);
    MIX(sum, sim->y, sim->n);
    MIX(sum, sim->m, sim->n);
    if (sim->cell) MIX(sum, sim->cell, sim->frame->cells);
    return sum;
}

/* ------------------------------------------------------------------------------------------------
   The program
   ---------------------------------------------------------------------------------------------- */

enum { FEW = 9, SOME = 22, MANY = 70, SIDE = 3, TRIANGLES = 2 * SIDE * SIDE };

enum {
    GRID, POINTS, BOXES, WALLS, COPY, LIST, CONTACTS, LOADED, BODIES, GRID_COPY, BODIES_COPY,
    OBJECTS
};

typedef struct world {
    faulty *f;
    int kind;                   /* what this program uses of everything */
    int dim;
    ugrid grid, grid_copy;
    lbvh points, boxes, walls, copy;
    nlist list, contacts, loaded;
    nbody sim, sim_copy;
    ugrid_desc of_grid;
    lbvh_desc of_points, of_boxes, of_walls;
    nlist_desc of_list, of_contacts, of_loaded;
    nbody_desc of_bodies;
    real pos[3 * MANY], moved[3 * MANY], box[6 * MANY], plane[2 * MANY], mass[MANY],
        corner[9 * TRIANGLES], sums[3 * MANY], out[2 * MANY];
    uint32_t masks[MANY];
    int32_t names[MANY], pairs[2 * MANY];
    nlist_mesh mesh;
    char *tree_file, *list_file, *grid_file, *body_file;
    int64_t tree_bytes, list_bytes, grid_bytes, body_bytes;
} world;

static uint64_t sum_of(const world *w, int object)
{
    switch (object) {
    case GRID: return sum_of_grid(&w->grid);
    case POINTS: return sum_of_tree(&w->points);
    case BOXES: return sum_of_tree(&w->boxes);
    case WALLS: return sum_of_tree(&w->walls);
    case COPY: return sum_of_tree(&w->copy);
    case LIST: return sum_of_list(&w->list);
    case CONTACTS: return sum_of_list(&w->contacts);
    case LOADED: return sum_of_list(&w->loaded);
    case GRID_COPY: return sum_of_grid(&w->grid_copy);
    case BODIES_COPY: return sum_of_bodies(&w->sim_copy);
    default: return sum_of_bodies(&w->sim);
    }
}

static int32_t n_of(const world *w, int object)
{
    const int32_t n[OBJECTS] = {w->grid.n, w->points.n,   w->boxes.n,  w->walls.n, w->copy.n,
                                w->list.n, w->contacts.n, w->loaded.n, w->sim.n,
                                w->grid_copy.n, w->sim_copy.n};
    return n[object];
}

static int64_t bytes_of(const world *w)
{
    return ugrid_bytes(&w->grid) + lbvh_bytes(&w->points) + lbvh_bytes(&w->boxes) +
           lbvh_bytes(&w->walls) + lbvh_bytes(&w->copy) + nlist_bytes(&w->list) +
           nlist_bytes(&w->contacts) + nlist_bytes(&w->loaded) + nbody_bytes(&w->sim) +
           ugrid_bytes(&w->grid_copy) + nbody_bytes(&w->sim_copy);
}

static void make_world(world *w, faulty *f, int kind)
{
    static const int32_t corners[6][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 0}, {1, 1}, {0, 1}};
    int32_t i, a, k;
    wl_random r = wl_seed((uint64_t)kind);
    memset(w, 0, sizeof *w);
    w->f = f;
    w->kind = kind;
    w->dim = kind % 2 ? 3 : 2;
    for (i = 0; i < 3 * MANY; i++)
        w->pos[i] = (real)wl_u(&r), w->moved[i] = w->pos[i] + (real)0.02 * (real)wl_u(&r);
    for (i = 0; i < MANY; i++) {
        for (a = 0; a < w->dim; a++) {
            w->box[2 * w->dim * i + a] = w->pos[w->dim * i + a] - (real)0.05;
            w->box[2 * w->dim * i + w->dim + a] = w->pos[w->dim * i + a] + (real)0.05;
        }
        w->plane[2 * i] = (real)wl_u(&r);
        w->plane[2 * i + 1] = (real)wl_u(&r);
        w->mass[i] = 1 + (real)wl_u(&r);
        w->masks[i] = 1u << i % 3;
        w->names[i] = i;
        w->pairs[2 * i] = i;
        w->pairs[2 * i + 1] = (i + 1 + i % 5) % MANY;
    }
    for (i = 0; i < TRIANGLES; i++) for (k = 0; k < 3; k++) {
        w->corner[9 * i + 3 * k] = (real)(i / 2 % SIDE + corners[3 * (i % 2) + k][0]) / SIDE;
        w->corner[9 * i + 3 * k + 1] = (real)(i / 2 / SIDE + corners[3 * (i % 2) + k][1]) / SIDE;
        w->corner[9 * i + 3 * k + 2] = (real)0.5;
    }
    w->mesh.vertices = w->corner;
    w->mesh.triangles = TRIANGLES;

    w->of_grid.dim = w->dim;
    for (a = 0; a < w->dim; a++)
        w->of_grid.max[a] = (real)1.03125, w->of_grid.periodic[a] = kind >> 2 & a & 1;
    w->of_grid.cell = (real)0.25;
    w->of_grid.method = (ugrid_method)(kind % 6);
    w->of_grid.inverse = 1;
    if (kind == 7 || kind == 8) w->of_grid.placement = UGRID_TIGHT;
    if (kind == 10) w->of_grid.no_records = 1;
    if (kind == 11) {
        w->of_grid.unbounded = 1;
        memset(w->of_grid.periodic, 0, sizeof w->of_grid.periodic);
    }
    if (w->of_grid.unbounded || w->of_grid.placement == UGRID_TIGHT)
        w->of_grid.method = kind == 7 ? UGRID_COUNT : UGRID_LIST;

    w->of_points.dim = w->of_boxes.dim = w->dim;
    w->of_points.kind = LBVH_POINTS;
    w->of_points.builder = (lbvh_builder)(kind % 2);
    w->of_boxes.masks = kind % 3 ? w->masks : NULL;
    w->of_boxes.keep_codes = kind % 4 == 1;
    w->of_boxes.bits = kind % 5 ? 63 : 30;
    w->of_walls.kind = LBVH_TRIANGLES;
    w->of_walls.builder = (lbvh_builder)(kind / 2 % 2);

    w->of_list.dim = w->dim;
    w->of_list.radius = (real)0.2;
    w->of_list.layout = (nlist_layout)(kind % 4);
    w->of_list.width = w->of_list.layout == NLIST_STATIC   ? MANY
                       : w->of_list.layout == NLIST_HYBRID ? 2
                                                           : 0;
    w->of_list.half = kind / 2 % 2;
    w->of_list.history = kind % 3 == 1 ? 8 : 0;
    w->of_list.events = kind % 3 != 0;
    w->of_list.skin = kind % 4 > 1 ? (real)0.02 : 0;
    w->of_list.masks = kind == 9 ? w->masks : NULL;
    w->of_loaded = w->of_list;
    w->of_loaded.layout = (nlist_layout)(kind / 3 % 4);
    w->of_loaded.width = w->of_loaded.layout == NLIST_STATIC ? MANY : 4;
    w->of_contacts.radius = (real)0.3;
    w->of_contacts.layout = NLIST_DYNAMIC;
    w->of_contacts.history = kind % 2 ? 12 : 0;
    w->of_contacts.events = kind % 5 == 1;

    w->of_bodies.method = (nbody_method)(kind % 4);
    w->of_bodies.order = w->of_bodies.method == NBODY_FORCE_NODES ? 1 + kind / 4 % 4 : 0;
    w->of_bodies.levels = w->of_bodies.method == NBODY_VIRTUAL_PARTICLES ? 4 : 0;
    w->of_bodies.leaf = w->of_bodies.method == NBODY_FORCE_NODES ? 3 : 0;
    TAKE_FROM(&w->of_grid, f);
    TAKE_FROM(&w->of_points, f);
    TAKE_FROM(&w->of_boxes, f);
    TAKE_FROM(&w->of_walls, f);
    TAKE_FROM(&w->of_list, f);
    TAKE_FROM(&w->of_loaded, f);
    TAKE_FROM(&w->of_contacts, f);
    TAKE_FROM(&w->of_bodies, f);
}

/* The searches. They take a const object and so allocate nothing, whatever is left. */
static void search(world *w)
{
    int64_t const calls = w->f->calls, failed = w->f->failed;
    static int64_t offsets[MANY + 1];
    static int32_t ids[MANY * MANY], counts[MANY];
    int64_t needed = 0, pairs = 0;
    int32_t found = 0, moved = 0;
    lbvh_queries q;
    lbvh_quality quality;
    nbody_counts cost;
    nbody_error error;
    real d2[4], at[2];
    memset(&q, 0, sizeof q);
    if (!w->of_grid.unbounded) CHECK(ugrid_count_pairs(&w->grid, (real)0.2, &pairs) == UGRID_OK);
    CHECK(ugrid_neighbors(&w->grid, (real)0.2, 0, offsets, ids, MANY * MANY, &needed) == UGRID_OK);
    CHECK(ugrid_neighbors_at(&w->grid, w->moved, 0, FEW, (real)0.2, offsets, ids, MANY * MANY,
                             &needed) == UGRID_OK);
    CHECK(ugrid_query(&w->grid, w->pos, (real)0.2, ids, MANY, &found) == UGRID_OK);
    CHECK(lbvh_pairs(&w->boxes, ids, MANY * MANY / 2, &needed) == LBVH_OK);
    CHECK(lbvh_count_overlaps(&w->boxes, &q, counts) == LBVH_OK);
    CHECK(lbvh_overlaps(&w->points, &q, offsets, ids, MANY * MANY, &needed) == LBVH_OK);
    CHECK(lbvh_nearest(&w->points, w->pos, 4, 1, NULL, NULL, ids, d2, &found) == LBVH_OK);
    CHECK(lbvh_measure(&w->boxes, &quality) == LBVH_OK);
    CHECK(nlist_pairs(&w->list, ids, MANY * MANY / 2, &needed, NULL, 0, NULL) == NLIST_OK);
    if (w->of_list.skin > 0 && w->list.n == MANY)
        CHECK(nlist_moved(&w->list, w->pos, 0, &moved) == NLIST_OK);
    if (w->sim.frame) {
        CHECK(nbody_fields_at(&w->sim, w->plane, 0, 1, at, NULL, NULL) == NBODY_OK);
        CHECK(nbody_count(&w->sim, &cost) == NBODY_OK);
        CHECK(nbody_estimate(&w->sim, w->out, 3, 1, &error) == NBODY_OK);
    }
    CHECK(w->f->calls == calls && w->f->failed == failed);
}

static int count_contact(void *user, int32_t i, int32_t j, void *history, real *own, real *other)
{
    (void)user;
    (void)history;
    own[0] = (real)(i + 1);
    if (other) other[0] = (real)(j % 100);
    return 1;
}

/* Results of four enums as one: 0 all is well, 1 out of memory, 2 anything else. */
static int of_ugrid(ugrid_result r) { return r == UGRID_OK ? 0 : r == UGRID_OUT_OF_MEMORY ? 1 : 2; }
static int of_lbvh(lbvh_result r) { return r == LBVH_OK ? 0 : r == LBVH_OUT_OF_MEMORY ? 1 : 2; }
static int of_nlist(nlist_result r) { return r == NLIST_OK ? 0 : r == NLIST_OUT_OF_MEMORY ? 1 : 2; }
static int of_nbody(nbody_result r) { return r == NBODY_OK ? 0 : r == NBODY_OUT_OF_MEMORY ? 1 : 2; }

static int build_list(world *w, const real *pos, int32_t n)
{
    nlist_result r = NLIST_OK;
    int32_t i;
    if (n != w->grid.n || w->kind % 4 == 0) r = nlist_build_brute(&w->list, &w->of_list, pos, 0, n);
    else if (w->kind % 4 == 1) r = nlist_build_lbvh(&w->list, &w->of_list, &w->points, pos, 0, n);
    else r = nlist_build_ugrid(&w->list, &w->of_list, &w->grid, pos, 0, n);
    for (i = 0; r == NLIST_OK && i < n && w->of_list.history; i++) {
        nlist_each e = nlist_of(&w->list, i);
        while (nlist_next(&e))
            oracle_write(e.history, w->of_list.history, (uint32_t)(100 * i + e.id));
    }
    return of_nlist(r);
}

static int sum_list(world *w, nlist *list)
{
    nlist_sums how;
    memset(&how, 0, sizeof how);
    how.values = 1;
    how.unit = 1.0 / 1024;
    memset(w->sums, 0, sizeof w->sums);
    return of_nlist(nlist_sum(list, &how, count_contact, NULL, w->sums));
}

/* Three sets of masses, which overlap: the last is that of other calls. */
static int sets_of_bodies(world *w)
{
    real mass[3 * MANY], acc[6 * MANY];
    int32_t i;
    for (i = 0; i < 3 * w->sim.n; i++) mass[i] = w->mass[i % w->sim.n];
    return of_nbody(nbody_fields_sets(&w->sim, 3, mass, acc, NULL));
}

static int step_bodies(world *w, nbody_integrator integrator)
{
    static real pos[2 * MANY], vel[2 * MANY], acc[2 * MANY];
    nbody_bodies b;
    memcpy(pos, w->plane, sizeof pos); /* every attempt begins at the same place */
    memset(vel, 0, sizeof vel);
    memset(&b, 0, sizeof b);
    b.pos = pos;
    b.vel = vel;
    b.acc = acc;
    b.mass = w->mass;
    b.n = MANY;
    return of_nbody(nbody_step(&w->sim, &w->of_bodies, &b, (real)0.001, integrator));
}

/* What becomes of the object of a step that finds no memory. */
enum { AS_BEFORE, EMPTY, LIST_RULE, NEVER };

/* The steps, each with its object, and the step that has to be done again if the object was emptied
   that it needs as input. */
#define STEPS(X)                                                                                   \
    X(GRID, EMPTY, 0, of_ugrid(ugrid_build(&w->grid, &w->of_grid, w->pos, 0, SOME)))               \
    X(POINTS, EMPTY, 0, of_lbvh(lbvh_build(&w->points, &w->of_points, w->pos, 0, SOME)))           \
    X(BOXES, EMPTY, 0, of_lbvh(lbvh_reserve(&w->boxes, &w->of_boxes, SOME)))                       \
    X(BOXES, EMPTY, 0, of_lbvh(lbvh_build(&w->boxes, &w->of_boxes, w->box, 0, SOME)))              \
    X(WALLS, EMPTY, 0, of_lbvh(lbvh_build(&w->walls, &w->of_walls, w->corner, 0, TRIANGLES)))      \
    X(LIST, LIST_RULE, 0, build_list(w, w->pos, SOME))                                             \
    X(LIST, NEVER, 0, (search(w), 0))                                                              \
    X(GRID, EMPTY, 0, of_ugrid(ugrid_build(&w->grid, &w->of_grid, w->pos, 0, MANY)))               \
    X(GRID, AS_BEFORE, 0, of_ugrid(ugrid_validate(&w->grid)))                                      \
    X(GRID_COPY, EMPTY, 0, save_and_load_grid(w))                                                  \
    X(POINTS, EMPTY, 0, of_lbvh(lbvh_build(&w->points, &w->of_points, w->pos, 0, MANY)))           \
    X(POINTS, AS_BEFORE, 0, of_lbvh(lbvh_validate(&w->points)))                                    \
    X(LIST, LIST_RULE, 0, build_list(w, w->pos, MANY))                                             \
    X(LIST, AS_BEFORE, 0, of_nlist(nlist_validate(&w->list)))                                      \
    X(LIST, NEVER, 0, (search(w), 0))                                                              \
    X(LIST, AS_BEFORE, 0, sum_list(w, &w->list))                                                   \
    X(BOXES, EMPTY, 0, of_lbvh(lbvh_build(&w->boxes, &w->of_boxes, w->box, 0, MANY)))              \
    X(POINTS, NEVER, 0, of_lbvh(lbvh_refit(&w->points, w->moved, 0)))                              \
    X(POINTS, NEVER, 0, of_lbvh(lbvh_optimize(&w->points, NULL)))                                  \
    X(COPY, EMPTY, 0, save_and_load_tree(w))                                                       \
    X(GRID, EMPTY, 0, of_ugrid(ugrid_build(&w->grid, &w->of_grid, w->moved, 0, MANY)))             \
    X(LIST, LIST_RULE, 0, build_list(w, w->moved, MANY))                                           \
    X(LIST, LIST_RULE, 1, follow(w, MANY))                                                         \
    X(LIST, LIST_RULE, 2, follow(w, MANY - 5))                                                     \
    X(LIST, AS_BEFORE, 0, sum_list(w, &w->list))                                                   \
    X(LOADED, LIST_RULE, 0, save_and_load_list(w))                                                 \
    X(LOADED, AS_BEFORE, 0, of_nlist(nlist_validate(&w->loaded)))                                  \
    X(CONTACTS, LIST_RULE, 0, build_contacts(w, w->pos, FEW))                                      \
    X(CONTACTS, LIST_RULE, 0, build_contacts(w, w->moved, MANY / 2))                               \
    X(CONTACTS, AS_BEFORE, 0, sum_list(w, &w->contacts))                                           \
    X(LIST, EMPTY, 0, of_nlist(nlist_reserve(&w->list, &w->of_list, MANY, 9 * MANY)))              \
    X(LIST, LIST_RULE, 0, pairs_or_brute(w))                                                       \
    X(LIST, LIST_RULE, 0, build_list(w, w->moved, FEW))                                            \
    X(BODIES, EMPTY, 0, of_nbody(nbody_build(&w->sim, &w->of_bodies, w->plane, 0, w->mass, SOME))) \
    X(BODIES, EMPTY, 0,                                                                            \
      of_nbody(nbody_accelerations(&w->sim, &w->of_bodies, w->plane, 0, w->mass, SOME, w->out)))   \
    X(BODIES, EMPTY, 0,                                                                            \
      of_nbody(nbody_accelerations(&w->sim, &w->of_bodies, w->plane, 0, w->mass, MANY, w->out)))   \
    X(BODIES, AS_BEFORE, 0, of_nbody(nbody_validate(&w->sim)))                                     \
    X(BODIES_COPY, EMPTY, 0, save_and_load_bodies(w))                                              \
    X(BODIES, EMPTY, 3, of_nbody(nbody_fields_again(&w->sim, w->mass, w->out, w->sums)))           \
    X(BODIES, EMPTY, 4, sets_of_bodies(w))                                                         \
    X(BODIES, NEVER, 0, (search(w), 0))                                                            \
    X(BODIES, EMPTY, 0,                                                                            \
      of_nbody(nbody_fields(&w->sim, &w->of_bodies, w->plane, 0, w->mass, FEW, w->out, w->sums)))  \
    X(BODIES, EMPTY, 0, step_bodies(w, NBODY_LEAPFROG))                                            \
    X(BODIES, EMPTY, 0, of_nbody(nbody_reserve(&w->sim, &w->of_bodies, 2 * MANY)))                 \
    X(BODIES, EMPTY, 0, step_bodies(w, NBODY_EULER))                                               \
    X(GRID, EMPTY, 0, of_ugrid(ugrid_reserve(&w->grid, &w->of_grid, 2 * MANY)))                    \
    X(GRID, NEVER, 0, of_ugrid(ugrid_build(&w->grid, &w->of_grid, w->moved, 0, MANY)))             \
    X(GRID, NEVER, 0, (ugrid_free(&w->grid), 0))                                                   \
    X(GRID, EMPTY, 0, of_ugrid(ugrid_build(&w->grid, &w->of_grid, w->moved, 0, FEW)))              \
    X(COPY, NEVER, 0, (lbvh_free(&w->copy), 0))                                                    \
    X(COPY, EMPTY, 0, of_lbvh(lbvh_build(&w->copy, &w->of_boxes, w->box, 0, FEW)))

static int save_and_load_tree(world *w)
{
    int64_t const calls = w->f->calls;
    if (!w->tree_file) {
        CHECK(lbvh_save(&w->boxes, NULL, 0, &w->tree_bytes) == LBVH_BUFFER_TOO_SMALL);
        w->tree_file = NEW(char, w->tree_bytes);
        CHECK(lbvh_save(&w->boxes, w->tree_file, w->tree_bytes, &w->tree_bytes) == LBVH_OK);
    }
    CHECK(w->f->calls == calls);
    return of_lbvh(lbvh_load(&w->copy, &w->of_points, w->tree_file, w->tree_bytes));
}

static int save_and_load_list(world *w)
{
    int64_t const calls = w->f->calls;
    if (!w->list_file) {
        CHECK(nlist_save(&w->list, NULL, 0, &w->list_bytes) == NLIST_BUFFER_TOO_SMALL);
        w->list_file = NEW(char, w->list_bytes);
        CHECK(nlist_save(&w->list, w->list_file, w->list_bytes, &w->list_bytes) == NLIST_OK);
    }
    CHECK(w->f->calls == calls);
    return of_nlist(nlist_load(&w->loaded, &w->of_loaded, w->list_file, w->list_bytes));
}

static int save_and_load_grid(world *w)
{
    int64_t const calls = w->f->calls;
    if (!w->grid_file) {
        CHECK(ugrid_save(&w->grid, NULL, 0, &w->grid_bytes) == UGRID_BUFFER_TOO_SMALL);
        w->grid_file = NEW(char, w->grid_bytes);
        CHECK(ugrid_save(&w->grid, w->grid_file, w->grid_bytes, &w->grid_bytes) == UGRID_OK);
    }
    CHECK(w->f->calls == calls);
    return of_ugrid(ugrid_load(&w->grid_copy, &w->of_grid, w->grid_file, w->grid_bytes));
}

static int save_and_load_bodies(world *w)
{
    int64_t const calls = w->f->calls;
    if (!w->body_file) {
        CHECK(nbody_save(&w->sim, NULL, 0, &w->body_bytes) == NBODY_BUFFER_TOO_SMALL);
        w->body_file = NEW(char, w->body_bytes);
        CHECK(nbody_save(&w->sim, w->body_file, w->body_bytes, &w->body_bytes) == NBODY_OK);
    }
    CHECK(w->f->calls == calls);
    return of_nbody(nbody_load(&w->sim_copy, &w->of_bodies, w->body_file, w->body_bytes));
}

/* The particles were sorted by the grid (or turned round), and the last ones left. */
static int follow(world *w, int32_t n)
{
    int32_t i;
    for (i = 0; i < MANY; i++)
        w->names[i] = w->grid.inverse && n == MANY ? w->grid.inverse[i] : MANY - 1 - i;
    for (i = 0; i < MANY; i++) if (w->names[i] >= n) w->names[i] = -1;
    return of_nlist(nlist_remap(&w->list, w->names, n));
}

static int build_contacts(world *w, const real *pos, int32_t n)
{
    return of_nlist(
        nlist_build_mesh(&w->contacts, &w->of_contacts, &w->walls, &w->mesh, pos, 0, n));
}

static int pairs_or_brute(world *w)
{
    if (w->of_list.skin > 0) return build_list(w, w->pos, SOME);
    return of_nlist(nlist_build_pairs(&w->list, &w->of_list, w->pairs, MANY, MANY));
}

#define AS_STEP(object, rule, again, call) {object, rule, again},
static const struct { int object, rule, again; } steps[] = {STEPS(AS_STEP)};

static int do_step(world *w, int k)
{
    int at = 0;
#define AS_CALL(object, rule, again, call) if (at++ == k) return (call);
    STEPS(AS_CALL)
    return 2;
}

static world *current_world;
static int current_step;

static void describe_step(void)
{
    print_error("  program %d, step %d, allocation %lld fails%s\n", current_world->kind,
                current_step, (long long)current_world->f->fail_at,
                current_world->f->forever ? ", and all after it" : "");
}

/* After a failure: is the object what the comment promises? */
static void check_left_behind(const world *w, int k, uint64_t before)
{
    int const object = steps[k].object, n = n_of(w, object);
    uint64_t const now = sum_of(w, object);
    const nlist_desc *d = object == LIST     ? &w->of_list
                          : object == LOADED ? &w->of_loaded
                                             : &w->of_contacts;
    CHECK(steps[k].rule != NEVER);
    if (steps[k].rule == AS_BEFORE) CHECK(now == before);
    if (steps[k].rule == EMPTY) CHECK(n == 0);
    if (steps[k].rule == LIST_RULE) CHECK(now == before || (n == 0 && !d->history && !d->events));
    if (object == BODIES && steps[k].rule == EMPTY) CHECK(w->sim.frame == NULL);
}

typedef struct record { int64_t calls; uint64_t sum; } record;

/* Runs the program; noted[k] is what step k left behind, and the allocations until then: to be
   noted, or to be found again. Looks at all objects only where the failure is; before it, all is as
   it was. Returns the allocations. */
static int64_t run(int kind, faulty *f, record *noted, int note)
{
    world *w = NEW(world, 1);
    int k;
    make_world(w, f, kind);
    current_world = w;
    describe = describe_step;
    for (k = 0; k < COUNT_OF(steps); k++) {
        uint64_t before[OBJECTS];
        int64_t const failed = f->failed;
        int const here = !note && failed == 0 && f->fail_at <= noted[k].calls;
        int o, r;
        current_step = k;
        for (o = 0; o < OBJECTS && (here || note); o++) before[o] = sum_of(w, o);
        r = do_step(w, k);
        CHECK(r < 2 && (f->failed > failed) == here);
        CHECK(f->h.live_bytes == bytes_of(w) && !f->h.wrong);
        /* where growing ahead fails, the exact size may do */
        CHECK(r == here || (r == 0 && !f->forever));
        for (o = 0; o < OBJECTS && (here || note); o++)
            if (o != steps[k].object) CHECK(sum_of(w, o) == before[o]);
        if (r == 1) {
            int64_t const at = f->fail_at;
            check_left_behind(w, k, before[steps[k].object]);
            f->fail_at = 0;
            if (steps[k].again && n_of(w, steps[k].object) == 0)
                for (o = k - steps[k].again; o < k; o++) CHECK(do_step(w, o) == 0);
            CHECK(do_step(w, k) == 0);
            f->fail_at = f->forever ? 0 : at;
        }
        CHECK(f->h.live_bytes == bytes_of(w) && !f->h.wrong);
        if (note) {
            noted[k].calls = f->calls;
            noted[k].sum = sum_of(w, steps[k].object);
        } else if (f->failed) CHECK(sum_of(w, steps[k].object) == noted[k].sum);
    }
    ugrid_free(&w->grid);
    lbvh_free(&w->points);
    lbvh_free(&w->boxes);
    lbvh_free(&w->walls);
    lbvh_free(&w->copy);
    nlist_free(&w->list);
    nlist_free(&w->contacts);
    nlist_free(&w->loaded);
    nbody_free(&w->sim);
    ugrid_free(&w->grid_copy);
    nbody_free(&w->sim_copy);
    CHECK(bytes_of(w) == 0 && f->h.live_bytes == 0 && f->h.live_blocks == 0 && !f->h.wrong);
    free(w->tree_file);
    free(w->list_file);
    free(w->grid_file);
    free(w->body_file);
    free(w);
    return f->calls;
}

static void test_programs(void **state)
{
    record noted[COUNT_OF(steps)];
    int kind, step = small_run() ? 90 : SANITIZED ? 7 : 3;
    (void)state;
    for (kind = 0; kind < 12; kind++) {
        faulty f;
        int64_t total, k;
        int forever;
        memset(&f, 0, sizeof f);
        total = run(kind, &f, noted, 1);
        CHECK(total > 60 && f.failed == 0);
        for (forever = 0; forever < 2; forever++)
            for (k = 1 + (kind + forever) % step; k <= total; k += step) {
                memset(&f, 0, sizeof f);
                f.fail_at = k;
                f.forever = forever;
                (void)run(kind, &f, noted, 0);
                /* the exact size was tried, too; of lists also once all entries were counted */
                CHECK(f.failed == 1 || (forever && f.failed <= 4));
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_programs),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
