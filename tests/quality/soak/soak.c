/* soak.c - two granular scenes that run for as long as you like, while everything about their lists
   changes at random, checked against a model that knows nothing of the library.
   SPDX-License-Identifier: MIT OR Unlicense

   drum   spheres 1 : 3 in a rotating drum (gravity turns instead), periodic along its axis
   dam    two sizes 1 : 10 in a long box, a reservoir on the left, an outlet on the right

   In every step the contacts come from a nlist with history: spring, the step at which the contact
   began, and both uids, in the order of the row. The list is made by a source that changes at
   random, kept for some steps by a skin, changes its layout, is saved, freed, loaded; particles are
   sorted, inserted and deleted by nlist_remap.

   The model: (uid, uid) -> the step at which they began to touch, from this program's own search (a
   sweep along x in every step; all pairs against all at every check). After every step the number
   of touching entries and a sum of hashes of (uids, first step) must agree with the list's; at
   every check each entry, and ugrid_verify, lbvh_verify, nlist_verify with all particles, energy,
   positions, memory.

   The first failure ends the run. All decisions depend on the seed alone, but when to stop: with
   --steps that too. SIGINT ends a run with its summary.

       build/soak/soak --scene drum --minutes 30 --seed 1 --particles 2000 --check 200 */

#define _POSIX_C_SOURCE 200809L

#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_WIDE
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#include "nlist.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../common/workloads.h"

#if defined(__SANITIZE_ADDRESS__)
/* its quarantine and shadow are resident too: the growth is printed, not tested */
#define SOAK_ASAN 1
#else
#define SOAK_ASAN 0
#endif

/* ------------------------------------------------------------------------------------------------
   >>state
   ---------------------------------------------------------------------------------------------- */

enum { DRUM, DAM };
enum { NEWCOMERS = 12 };  /* at once, at most */

/* What a contact keeps. */
typedef struct bytes_kept {
    float spring[3];
    int32_t began;          /* the step, from 1 on; 0: they do not touch */
    int32_t own, partner;   /* uids, of the row first */
} bytes_kept;

/* What one object of the library holds, as its allocator sees it. */
typedef struct account { int64_t live, blocks, calls, peak; } account;

/* An entry of the model. */
typedef struct known { uint64_t key; int32_t began, seen; } known;

enum { SORTS_GRID, SORTS_TREE, SORTS_SHUFFLE, SORTS };
enum { BY_GRID, BY_TREE, BY_REFIT, BY_STALE, BY_BRUTE, SOURCES };

typedef struct soak {
    int scene, full;
    uint32_t seed;
    wl_random random;
    int32_t most, n, next_uid, target;
    /* [most]: x y z r; r; velocity; angular velocity; box; force and torque */
    float *rec, *radii, *vel, *spin, *boxes, *sums;
    int32_t *uid, *by_x, *new_id, *names;
    unsigned char *spare;                           /* 16 bytes a particle, for moving */
    float smallest, largest, dt, size[3], drum;     /* drum: its radius */
    float gravity[3];
    int32_t step;

    ugrid grid;
    lbvh tree;
    nlist list;
    nlist_desc desc;
    account grid_memory, tree_memory, list_memory;
    unsigned char *file;
    size_t file_room;

    known *table, *other_table;
    uint32_t table_mask;
    int32_t table_used;
    int64_t touching;       /* pairs, by the model */
    uint64_t sum;           /* hashes of (uids, began) */
    int64_t list_touching;
    uint64_t list_sum;

    double energy, work;    /* at the last check, and what came and went since */
    int have_energy;
    double greatest_gain;   /* of energy between checks, against all of it */

    int64_t builds[SOURCES], sorts[SORTS], inserted, deleted, layouts, saves, tree_saves, reserves,
        frees, remaps, refused, kept, checks, compared, contacts_begun, verified_rows,
        sums_in_units;
    int64_t rss_first, rss_last, held_first, held_most;
    int32_t most_ever;
    int64_t widest, most_entries, most_cells, most_spans;   /* what held memory may come from */
    int failures;
} soak;

static void fail(soak *s, const char *format, ...)
{
    va_list arguments;
    if (s->failures++) return;
    printf("FAILURE step %d, scene %s, seed %u: ", (int)s->step, s->scene == DRUM ? "drum" : "dam",
           (unsigned)s->seed);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(" (n %d, layout %d, width %d, skin %g, entries %ld)\n", (int)s->n,
           (int)s->list.desc.layout, (int)s->list.desc.width, (double)s->list.desc.skin,
           (long)s->list.total);
    fflush(stdout);
}

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) { puts("out of memory"); exit(2); }
    memset(memory, 0, count * size); /* resident from the start */
    return memory;
}

static int one_in(soak *s, uint32_t k) { return wl_below(&s->random, k) == 0; }
static uint32_t below(soak *s, uint32_t k) { return wl_below(&s->random, k); }
static float between(soak *s, float a, float b) { return a + (b - a) * wl_u(&s->random); }

static void *account_alloc(size_t bytes, void *user)
{
    account *a = (account *)user;
    void *memory = malloc(bytes);
    if (!memory) return NULL;
    a->live += (int64_t)bytes;
    a->blocks++;
    a->calls++;
    if (a->live > a->peak) a->peak = a->live;
    return memory;
}

static void account_free(void *memory, size_t bytes, void *user)
{
    account *a = (account *)user;
    a->live -= (int64_t)bytes;
    a->blocks--;
    free(memory);
}

static int64_t resident(void)
{
    long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static volatile sig_atomic_t stopped;
static void stop(int number) { stopped = number; }

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t held(const soak *s)
{
    return s->grid_memory.live + s->tree_memory.live + s->list_memory.live;
}

/* ------------------------------------------------------------------------------------------------
   >>model: which particles touch, and since when; independent of the library
   ---------------------------------------------------------------------------------------------- */

/* d from i to j, the nearest image along the drum's axis. 1: they touch. */
static int touch(const soak *s, int32_t i, int32_t j, float d[3], float *d2)
{
    const float *p = s->rec + 4 * (size_t)i, *q = s->rec + 4 * (size_t)j;
    float const reach = p[3] + q[3];
    d[0] = q[0] - p[0];
    d[1] = q[1] - p[1];
    d[2] = q[2] - p[2];
    if (s->scene == DRUM) {
        float const half = s->size[2] / 2;
        if (d[2] > half) d[2] -= s->size[2];
        else if (d[2] < -half) d[2] += s->size[2];
    }
    *d2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    return *d2 <= reach * reach;
}

static uint64_t key_of(int32_t a, int32_t b)
{
    uint32_t const low = (uint32_t)(a < b ? a : b), high = (uint32_t)(a < b ? b : a);
    return (uint64_t)low << 32 | high;
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint64_t hash_of(uint64_t key, int32_t began)
{
    return mixed(key + 0x9E3779B97F4A7C15u * (uint64_t)(uint32_t)(began + 1));
}

/* The entry of a pair, or the empty one where it belongs (key 0: no pair has it, uids begin with
   1). */
static known *look_up(const soak *s, known *table, uint64_t key)
{
    uint32_t at = (uint32_t)mixed(key) & s->table_mask;
    while (table[at].key && table[at].key != key) at = (at + 1) & s->table_mask;
    return &table[at];
}

/* Pairs that no longer touch go when the table is half full. */
static void tidy(soak *s)
{
    known *fresh = s->other_table;
    uint32_t k;
    memset(fresh, 0, ((size_t)s->table_mask + 1) * sizeof *fresh);
    s->table_used = 0;
    for (k = 0; k <= s->table_mask; k++) {
        if (!s->table[k].key || s->table[k].seen < s->step - 1) continue;
        *look_up(s, fresh, s->table[k].key) = s->table[k];
        s->table_used++;
    }
    s->other_table = s->table;
    s->table = fresh;
    if (s->table_used > (int32_t)(s->table_mask / 4 * 3))
        fail(s, "the model's table is full: too many contacts for it");
}

static void model_meet(soak *s, int32_t i, int32_t j)
{
    uint64_t const key = key_of(s->uid[i], s->uid[j]);
    known *k = look_up(s, s->table, key);
    if (!k->key) s->table_used++;
    if (!k->key || k->seen != s->step - 1) {
        k->key = key;
        k->began = s->step;
        s->contacts_begun++;
    }
    k->seen = s->step;
    s->touching++;
    s->sum += hash_of(key, k->began);
}

/* All contacts of this step: a sweep along x. by_x stays nearly sorted. */
static void model_step(soak *s)
{
    float d[3], d2;
    int32_t a, b;
    for (a = 1; a < s->n; a++) {
        int32_t const i = s->by_x[a];
        float const x = s->rec[4 * (size_t)i];
        for (b = a; b > 0 && s->rec[4 * (size_t)s->by_x[b - 1]] > x; b--)
            s->by_x[b] = s->by_x[b - 1];
        s->by_x[b] = i;
    }
    s->touching = 0;
    s->sum = 0;
    if (s->table_used > (int32_t)(s->table_mask / 2)) tidy(s);
    for (a = 0; a < s->n; a++) {
        int32_t const i = s->by_x[a];
        float const up_to =
            s->rec[4 * (size_t)i] + (s->rec[4 * (size_t)i + 3] + s->largest) * 1.0001f + 1e-4f;
        for (b = a + 1; b < s->n && s->rec[4 * (size_t)s->by_x[b]] <= up_to; b++)
            if (touch(s, i, s->by_x[b], d, &d2)) model_meet(s, i, s->by_x[b]);
    }
}

/* The same by brute force: all against all. */
static void model_brute(soak *s)
{
    float d[3], d2;
    int64_t pairs = 0;
    uint64_t sum = 0;
    int32_t i, j;
    for (i = 0; i < s->n; i++) {
        for (j = i + 1; j < s->n; j++) {
            uint64_t key;
            if (!touch(s, i, j, d, &d2)) continue;
            key = key_of(s->uid[i], s->uid[j]);
            sum += hash_of(key, look_up(s, s->table, key)->began);
            pairs++;
        }
    }
    if (pairs != s->touching || sum != s->sum)
        fail(s, "the model's sweep found %ld pairs, brute force %ld", (long)s->touching,
             (long)pairs);
}

/* ------------------------------------------------------------------------------------------------
   >>physics: springs and dashpots, along the normal and along the surface, Coulomb's limit
   ---------------------------------------------------------------------------------------------- */

static float const stiffness = 2000, stiffness_t = 0.4f, friction = 0.4f, damping = 0.2f;

static float mass_of(float r) { return 4.18879f * r * r * r; }
static float dot(const float a[3], const float b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const float a[3], const float b[3], float c[3])
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* Force on the one that `normal` points away from, that moves with `speed` at the contact relative
   to the other. spring may be NULL. */
static void contact_force(float k, float mass, float overlap, const float normal[3],
                          const float speed[3], float dt, float *spring, float force[3])
{
    float const c = 2 * damping * sqrtf(k * mass), along = dot(speed, normal), kt = stiffness_t * k,
                ct = 0.5f * c;
    float push = k * overlap + c * along, slide[3], most, length, s = 0;
    int a;
    if (push < 0) push = 0;
    most = friction * push;
    if (spring) s = dot(spring, normal);
    for (a = 0; a < 3; a++) {
        float const surface = speed[a] - along * normal[a];
        if (spring) spring[a] += surface * dt - s * normal[a];
        slide[a] = -ct * surface - (spring ? kt * spring[a] : 0);
    }
    length = sqrtf(dot(slide, slide));
    for (a = 0; a < 3; a++) {
        float const cut = length > most ? most / length : 1;
        if (spring && length > most) spring[a] *= cut;
        force[a] = slide[a] * cut - push * normal[a];
    }
}

/* For nlist_sum, and the bookkeeping in the contact's bytes. */
static int contact(void *user, int32_t i, int32_t j, void *history, nlist_real *own,
                   nlist_real *other)
{
    soak *s = (soak *)user;
    bytes_kept *kept = (bytes_kept *)history;
    float const a = s->radii[i], b = s->radii[j],
                mass = mass_of(a) * mass_of(b) / (mass_of(a) + mass_of(b));
    float d[3], d2, distance, normal[3] = {0, 0, 1}, turn[3], lever[3], speed[3], force[3],
                              torque[3];
    int axis;
    if (!touch(s, i, j, d, &d2)) {
        memset(kept, 0, sizeof *kept);
        return 0;
    }
    if (!kept->began) {
        memset(kept, 0, sizeof *kept);
        kept->began = s->step;
        kept->own = s->uid[i];
        kept->partner = s->uid[j];
    }
    if (!s->full || s->uid[i] < s->uid[j]) {
        s->list_touching++;
        s->list_sum += hash_of(key_of(kept->own, kept->partner), kept->began);
    }
    if (kept->own != s->uid[i] || kept->partner != s->uid[j])
        fail(s, "the bytes of %d and %d are in the row of %d with %d", (int)kept->own,
             (int)kept->partner, (int)s->uid[i], (int)s->uid[j]);
    distance = sqrtf(d2);
    for (axis = 0; axis < 3; axis++) {
        if (distance > 0) normal[axis] = d[axis] / distance;
        lever[axis] =
            a * s->spin[3 * (size_t)i + (size_t)axis] + b * s->spin[3 * (size_t)j + (size_t)axis];
    }
    cross(lever, normal, turn);
    for (axis = 0; axis < 3; axis++)
        speed[axis] = s->vel[3 * (size_t)i + (size_t)axis] - s->vel[3 * (size_t)j + (size_t)axis] +
                      turn[axis];
    contact_force(stiffness * 2 * a * b / (a + b), mass, a + b - distance, normal, speed, s->dt,
                  kept->spring, force);
    cross(normal, force, torque);
    for (axis = 0; axis < 3; axis++) {
        own[axis] = force[axis];
        own[3 + axis] = a * torque[axis];
        if (!s->full) other[axis] = -force[axis];
        if (!s->full) other[3 + axis] = b * torque[axis];
    }
    return 1;
}

/* Overlaps with walls: normals point out. Returns how many. */
static int walls(const soak *s, int32_t i, float normal[6][3], float overlap[6])
{
    const float *p = s->rec + 4 * (size_t)i;
    int count = 0, axis, side;
    if (s->scene == DRUM) {
        float const out = sqrtf(p[0] * p[0] + p[1] * p[1]);
        if (out + p[3] <= s->drum || out <= 0) return 0;
        normal[0][0] = p[0] / out;
        normal[0][1] = p[1] / out;
        normal[0][2] = 0;
        overlap[0] = out + p[3] - s->drum;
        return 1;
    }
    for (axis = 0; axis < 3; axis++) {
        for (side = 0; side < 2; side++) {
            float const over = side ? p[axis] + p[3] - s->size[axis] : p[3] - p[axis];
            if (over <= 0) continue;
            memset(normal[count], 0, sizeof normal[count]);
            normal[count][axis] = side ? 1 : -1;
            overlap[count++] = over;
        }
    }
    return count;
}

static double potential_of(const soak *s, int32_t i)
{
    const float *p = s->rec + 4 * (size_t)i;
    double const g = sqrt((double)dot(s->gravity, s->gravity));
    double const height = s->scene == DRUM ? (double)s->drum : 0; /* above the lowest point */
    return (double)mass_of(p[3]) * (g * height - (double)s->gravity[0] * p[0] -
                                    (double)s->gravity[1] * p[1] - (double)s->gravity[2] * p[2]);
}

static double energy_of(const soak *s, int32_t i)
{
    const float *v = s->vel + 3 * (size_t)i, *w = s->spin + 3 * (size_t)i;
    double const m = (double)mass_of(s->radii[i]), r = (double)s->radii[i];
    return 0.5 * m * (double)dot(v, v) + 0.2 * m * r * r * (double)dot(w, w) + potential_of(s, i);
}

static double energy_in_contacts(const soak *s)
{
    double sum = 0;
    float d[3], d2, normal[6][3], overlap[6];
    int32_t i;
    int k;
    for (i = 0; i < s->n; i++) {
        nlist_each e = nlist_of(&s->list, i);
        while (nlist_next(&e)) {
            const bytes_kept *kept = (const bytes_kept *)e.history;
            float const a = s->radii[i], b = s->radii[e.id],
                        stiff = stiffness * 2 * a * b / (a + b);
            double over;
            if (!touch(s, i, e.id, d, &d2)) continue;
            over = (double)(a + b) - sqrt((double)d2);
            sum += (s->full ? 0.25 : 0.5) * (double)stiff *
                   (over * over + (double)stiffness_t * (double)dot(kept->spring, kept->spring));
        }
        for (k = walls(s, i, normal, overlap) - 1; k >= 0; k--)
            sum += 0.5 * (double)(stiffness * s->radii[i] * overlap[k] * overlap[k]);
    }
    return sum;
}

static void turn_gravity(soak *s)
{
    double before = 0, after = 0;
    double const angle = 0.4 / sqrt((double)s->drum) * (double)s->step * (double)s->dt;
    int32_t i;
    if (s->scene != DRUM) return;
    for (i = 0; i < s->n; i++) before += potential_of(s, i);
    s->gravity[0] = (float)sin(angle);
    s->gravity[1] = (float)-cos(angle);
    for (i = 0; i < s->n; i++) after += potential_of(s, i);
    s->work += after - before;
}

static void move(soak *s)
{
    int32_t i;
    for (i = 0; i < s->n; i++) {
        float *p = s->rec + 4 * (size_t)i, *v = s->vel + 3 * (size_t)i,
              *w = s->spin + 3 * (size_t)i, *sum = s->sums + 6 * (size_t)i;
        float const r = p[3], m = mass_of(r);
        float normal[6][3], overlap[6];
        int k, axis;
        for (k = walls(s, i, normal, overlap) - 1; k >= 0; k--) {
            float const lever[3] = {r * w[0], r * w[1], r * w[2]};
            float speed[3], force[3], torque[3];
            cross(lever, normal[k], speed);
            for (axis = 0; axis < 3; axis++) speed[axis] += v[axis];
            contact_force(stiffness * r, m, overlap[k], normal[k], speed, s->dt, NULL, force);
            cross(normal[k], force, torque);
            for (axis = 0; axis < 3; axis++) sum[axis] += force[axis];
            for (axis = 0; axis < 3; axis++) sum[3 + axis] += r * torque[axis];
        }
        for (axis = 0; axis < 3; axis++) {
            v[axis] += s->dt * (sum[axis] / m + s->gravity[axis]);
            w[axis] += s->dt * sum[3 + axis] / (0.4f * m * r * r);
            p[axis] += s->dt * v[axis];
        }
        if (s->scene == DRUM) {
            if (p[2] < 0) p[2] += s->size[2];
            if (p[2] >= s->size[2]) p[2] -= s->size[2];
            if (!(p[2] >= 0 && p[2] < s->size[2])) p[2] = 0;
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   >>sources: grids and trees of any kind, and lists from them
   ---------------------------------------------------------------------------------------------- */

static ugrid_desc random_cells(soak *s, int sorted)
{
    ugrid_desc desc;
    int a;
    memset(&desc, 0, sizeof desc);
    desc.method = sorted ? (below(s, 2) ? UGRID_COUNT : UGRID_SORT) : (ugrid_method)below(s, 6);
    desc.placement = !sorted && one_in(s, 3) ? UGRID_TIGHT : UGRID_LOOSE;
    desc.walk = (ugrid_walk)below(s, 5);
    desc.cell_order = (ugrid_cell_order)below(s, 2);
    desc.cell = between(s, 0.6f, 2.0f) * (2 * s->largest + s->desc.skin);
    if (s->scene == DAM && one_in(s, 3)) desc.cell = between(s, 0.3f, 0.6f);
    /* Morton: a cube of cells, the longest axis decides */
    if (desc.cell_order == UGRID_ROWS) desc.split = one_in(s, 3) ? 1 + (int32_t)below(s, 4) : 0;
    desc.no_records = one_in(s, 4);
    desc.inverse = sorted || one_in(s, 4);
    desc.slot_layout = (ugrid_slot_layout)below(s, 2);
    desc.slots = 1 + (int32_t)below(s, 32);
    if (desc.placement == UGRID_TIGHT) desc.size = desc.cell * between(s, 0.5f, 1);
    /* as many slots as the fullest cell takes, for every cell: not many cells */
    if (desc.method == UGRID_FIXED) {
        desc.cell_order = UGRID_ROWS;
        desc.split = 0;
        desc.cell = between(s, 1, 2) * (2 * s->largest + s->desc.skin);
    }
    if (s->scene == DRUM) {
        desc.min[0] = desc.min[1] = -s->drum;
        desc.max[0] = desc.max[1] = s->drum;
        desc.max[2] = s->size[2];
        desc.periodic[2] = 1;
    } else if (one_in(s, 4)) {
        desc.unbounded = 1;
    } else if (one_in(s, 2)) {
        for (a = 0; a < 3; a++) desc.max[a] = s->size[a];
    }
    desc.allocator.alloc = account_alloc;
    desc.allocator.free = account_free;
    desc.allocator.user = &s->grid_memory;
    return desc;
}

static void build_grid(soak *s, int sorted)
{
    int tries;
    for (tries = 0; tries < 1000; tries++) {
        ugrid_desc desc = random_cells(s, sorted);
        ugrid_result r = ugrid_build(&s->grid, &desc, s->rec, 16, s->n);
        if (r == UGRID_CELL_FULL) {
            desc.slots = s->grid.needed_slots;
            r = ugrid_build(&s->grid, &desc, s->rec, 16, s->n);
        }
        if (r == UGRID_OK) {
            int64_t const cells =
                (int64_t)s->grid.cell_count * (s->grid.slot ? s->grid.desc.slots : 1);
            if (cells > s->most_cells) s->most_cells = cells;
            if (s->grid.spans > s->most_spans) s->most_spans = s->grid.spans;
            return;
        }
        s->refused++;
        if (r != UGRID_BAD_WALK && r != UGRID_BAD_PLACEMENT && r != UGRID_BAD_OPTION) {
            fail(s, "ugrid_build: %s", ugrid_result_text(r));
            return;
        }
    }
    fail(s, "no grid in 1000 tries");
}

static lbvh_desc tree_desc(soak *s)
{
    lbvh_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = (lbvh_kind)below(s, 3);
    desc.radius = s->largest;
    desc.bits = one_in(s, 2) ? 30 : 63;
    desc.builder = (lbvh_builder)below(s, 3);
    desc.keep_codes = one_in(s, 4);
    desc.allocator.alloc = account_alloc;
    desc.allocator.free = account_free;
    desc.allocator.user = &s->tree_memory;
    return desc;
}

/* The elements of a kind: records serve as points and spheres. */
static const float *elements(soak *s, lbvh_kind kind, size_t *stride)
{
    size_t i, a;
    *stride = kind == LBVH_BOXES ? 0 : 16;
    if (kind != LBVH_BOXES) return s->rec;
    for (i = 0; i < (size_t)s->n; i++) {
        for (a = 0; a < 3; a++) {
            s->boxes[6 * i + a] = s->rec[4 * i + a] - s->rec[4 * i + 3];
            s->boxes[6 * i + 3 + a] = s->rec[4 * i + a] + s->rec[4 * i + 3];
        }
    }
    return s->boxes;
}

static void build_tree(soak *s)
{
    lbvh_desc const desc = tree_desc(s);
    size_t stride;
    const float *data = elements(s, desc.kind, &stride);
    lbvh_result const r = lbvh_build(&s->tree, &desc, data, stride, s->n);
    if (r != LBVH_OK) fail(s, "lbvh_build: %s", lbvh_result_text(r));
}

static void refit_tree(soak *s)
{
    size_t stride;
    const float *data = elements(s, s->tree.desc.kind, &stride);
    lbvh_result const r = lbvh_refit(&s->tree, data, stride);
    if (r != LBVH_OK) fail(s, "lbvh_refit: %s", lbvh_result_text(r));
}

static void random_list(soak *s)
{
    static float const skins[] = {0, 0.02f, 0.05f, 0.1f, 0.2f, 0.4f};
    static int32_t const widths[] = {0, 1, 2, 3, 4, 8, 8, 16, 20, 32};
    s->desc.layout = (nlist_layout)below(s, 4);
    s->desc.width = widths[below(s, sizeof widths / sizeof *widths)];
    s->desc.skin = skins[below(s, sizeof skins / sizeof *skins)] * (s->scene == DRUM ? 1 : 0.5f);
    s->desc.events = one_in(s, 2);
    s->desc.grow = one_in(s, 2);
    s->desc.capacity = one_in(s, 3) ? 1 + below(s, 4 * (uint32_t)s->n) : 0;
    s->layouts++;
}

static void note_size(soak *s, int64_t width, int64_t entries)
{
    if (width > s->widest) s->widest = width;
    if (entries > s->most_entries) s->most_entries = entries;
}

/* One call of a build, by any source. */
static nlist_result call_build(soak *s, int source)
{
    nlist_desc desc = s->desc;
    desc.radii = s->radii;
    if (source == BY_GRID) return nlist_build_ugrid(&s->list, &desc, &s->grid, s->rec, 16, s->n);
    if (source == BY_BRUTE) return nlist_build_brute(&s->list, &desc, s->rec, 16, s->n);
    return nlist_build_lbvh(&s->list, &desc, &s->tree, s->rec, 16, s->n);
}

static int random_source(soak *s)
{
    uint32_t const k = below(s, 200);
    int const tree = s->tree.n == s->n;
    if (k < 3) return BY_BRUTE;
    if (k < 50) return BY_TREE;
    if (k < 90 && tree) return BY_REFIT;
    if (k < 92 && tree) return BY_STALE;
    return BY_GRID;
}

/* Begun, persisting and ended must add up to what the list had and has. */
static void check_events(soak *s, int64_t had)
{
    int64_t const twice = s->full ? 2 : 1;
    const int64_t *count = s->list.event_count;
    if (!s->desc.events) return;
    if ((count[NLIST_BEGUN] + count[NLIST_PERSISTED]) * twice != s->list.total ||
        (count[NLIST_PERSISTED] + count[NLIST_ENDED]) * twice != had)
        fail(s, "events: %ld begun, %ld persisted, %ld ended; entries %ld before, %ld now",
             (long)count[NLIST_BEGUN], (long)count[NLIST_PERSISTED], (long)count[NLIST_ENDED],
             (long)had, (long)s->list.total);
}

static int build_list(soak *s)
{
    int const source = random_source(s);
    int64_t const had = s->list.total;
    nlist_result r;
    if (source == BY_GRID) build_grid(s, 0);
    if (source == BY_TREE) build_tree(s);
    if (source == BY_REFIT) refit_tree(s);
    if (s->failures) return source;
    r = call_build(s, source);
    if (r == NLIST_ROW_FULL) {
        s->refused++;
        s->desc.width = s->list.needed_width;
        if (s->desc.width > 1024) s->desc.layout = NLIST_HYBRID, s->desc.width = 8;
        r = call_build(s, source);
    }
    if (r == NLIST_LIST_FULL) {
        s->refused++;
        s->desc.capacity = s->list.needed_entries;
        r = call_build(s, source);
    }
    if (r != NLIST_OK) fail(s, "build by source %d: %s", source, nlist_result_text(r));
    else check_events(s, had);
    note_size(s, s->list.desc.width, s->list.total);
    note_size(s, 0, s->list.rows[s->list.current].capacity);
    s->builds[source]++;
    return source;
}

/* ------------------------------------------------------------------------------------------------
   >>particles: sorted, inserted, deleted, all by one call of nlist_remap
   ---------------------------------------------------------------------------------------------- */

static void permute(soak *s, void *data, size_t size)
{
    unsigned char *at = (unsigned char *)data;
    int32_t i;
    memcpy(s->spare, data, (size_t)s->n * size);
    for (i = 0; i < s->n; i++)
        if (s->new_id[i] >= 0)
            memcpy(at + (size_t)s->new_id[i] * size, s->spare + (size_t)i * size, size);
}

static void add_particle(soak *s, int32_t i, const float p[3], float r)
{
    memcpy(s->rec + 4 * (size_t)i, p, 3 * sizeof *p);
    s->rec[4 * (size_t)i + 3] = s->radii[i] = r;
    memset(s->vel + 3 * (size_t)i, 0, 3 * sizeof(float));
    memset(s->spin + 3 * (size_t)i, 0, 3 * sizeof(float));
    s->uid[i] = s->next_uid++;
    s->work += energy_of(s, i);
}

static float random_radius(soak *s)
{
    if (s->scene == DRUM) return between(s, s->smallest, s->largest);
    return one_in(s, 200) ? s->largest : s->smallest;
}

/* A free place; anywhere: in the whole scene, else in the reservoir. */
static int free_place(soak *s, float r, int anywhere, int32_t n, float p[3])
{
    int tries;
    for (tries = 0; tries < (anywhere ? 5000 : 30); tries++) {
        int32_t j, k;
        int axis;
        for (axis = 0; axis < 3; axis++) p[axis] = between(s, r, s->size[axis] - r);
        if (s->scene == DRUM) {
            p[0] -= s->drum;
            p[1] -= s->drum;
            p[2] = between(s, 0, s->size[2]);
            if (p[2] >= s->size[2]) p[2] = 0;
            if (sqrtf(p[0] * p[0] + p[1] * p[1]) + r >= s->drum * 0.999f) continue;
            if (!anywhere && dot(p, s->gravity) > -0.2f * s->drum) continue; /* the upper part */
        } else if (!anywhere) {
            p[0] = between(s, r, s->size[0] / 4);
            p[2] = between(s, s->size[2] / 2, s->size[2] - r);
        }
        for (k = 0, j = 0; k < n && j >= 0; k++) {
            const float *q = s->rec + 4 * (size_t)k;
            float dz = fabsf(p[2] - q[2]), reach = (r + q[3]) * 1.001f;
            if (s->scene == DRUM && dz > s->size[2] / 2) dz = s->size[2] - dz;
            if ((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + dz * dz <=
                reach * reach)
                j = -1;
        }
        if (j >= 0) return 1;
    }
    return 0;
}

/* new_id says where everybody goes (-1: away); n: how many there will be. The list and the arrays
   follow. */
static void follow(soak *s, int32_t n)
{
    int32_t i, k = 0;
    nlist_result const r = nlist_remap(&s->list, s->new_id, n);
    if (r != NLIST_OK) { fail(s, "nlist_remap: %s", nlist_result_text(r)); return; }
    for (i = 0; i < s->n; i++) if (s->new_id[i] < 0) s->work -= energy_of(s, i);
    permute(s, s->rec, 4 * sizeof(float));
    permute(s, s->radii, sizeof(float));
    permute(s, s->vel, 3 * sizeof(float));
    permute(s, s->spin, 3 * sizeof(float));
    permute(s, s->uid, sizeof(int32_t));
    for (i = 0; i < s->n; i++) if (s->new_id[s->by_x[i]] >= 0) s->by_x[k++] = s->new_id[s->by_x[i]];
    s->n = n;
    s->remaps++;
}

static void shuffle(soak *s, int32_t *ids, int32_t n)
{
    int32_t i;
    for (i = n - 1; i > 0; i--) {
        int32_t const k = (int32_t)below(s, (uint32_t)i + 1), was = ids[i];
        ids[i] = ids[k];
        ids[k] = was;
    }
}

static void sort_particles(soak *s)
{
    int const how = (int)below(s, SORTS);
    int32_t i;
    if (how == SORTS_GRID) {
        build_grid(s, 1);
        if (s->failures) return;
        memcpy(s->new_id, s->grid.inverse, (size_t)s->n * sizeof *s->new_id);
    } else if (how == SORTS_TREE) {
        if (s->tree.n != s->n || one_in(s, 2)) build_tree(s);
        if (s->failures) return;
        for (i = 0; i < s->n; i++) s->new_id[s->tree.node[s->tree.first_leaf + i].link] = i;
    } else {
        for (i = 0; i < s->n; i++) s->new_id[i] = i;
        shuffle(s, s->new_id, s->n);
    }
    follow(s, s->n);
    s->sorts[how]++;
}

/* Particles that leave: by the outlet, in the drum any. Marks new_id with -1; returns how many. */
static int32_t choose_leavers(soak *s, int32_t go)
{
    int32_t i, gone = 0;
    memset(s->new_id, 0, (size_t)s->n * sizeof *s->new_id);
    for (i = 0; gone < go && i < 40 * go; i++) {
        int32_t const k = (int32_t)below(s, (uint32_t)s->n);
        if (s->new_id[k] < 0 ||
            (s->scene == DAM && s->rec[4 * (size_t)k] < 0.75f * s->size[0] && i < 20 * go))
            continue;
        s->new_id[k] = -1;
        gone++;
    }
    return gone;
}

/* Some leave, some come, and the others keep their order or get any names: one call of
   nlist_remap. */
static void come_and_go(soak *s)
{
    int32_t const most = s->scene == DAM ? NEWCOMERS : NEWCOMERS / 2, had = s->n;
    int32_t go = 0, come = 0, found = 0, i, at, n;
    int32_t *names = s->names;
    float place[NEWCOMERS][4];
    int const how = (int)below(s, 3); /* newcomers last; among the others; everybody anywhere */
    if (one_in(s, 20)) s->target = s->most * 3 / 4 + (int32_t)below(s, (uint32_t)(s->most / 4 + 1));
    if (s->n > s->target || one_in(s, 3)) go = 1 + (int32_t)below(s, (uint32_t)most);
    if (s->n < s->target || one_in(s, 3)) come = 1 + (int32_t)below(s, (uint32_t)most);
    go = choose_leavers(s, had - go > s->most / 2 ? go : 0);
    if (had - go + come > s->most) come = s->most - (had - go);
    for (i = 0; i < come; i++) {
        float *p = place[found];
        int32_t k;
        p[3] = random_radius(s);
        if (!free_place(s, p[3], 0, had, p)) continue;
        for (k = 0; k < found; k++) /* the others that come: not even above each other */
            if (fabsf(place[k][0] - p[0]) < 1.1f * (place[k][3] + p[3]) &&
                fabsf(place[k][1] - p[1]) < 1.1f * (place[k][3] + p[3]))
                break;
        if (k == found) found++;
    }
    n = had - go + found;
    for (i = 0; i < n; i++) names[i] = i;
    if (how == 2) shuffle(s, names, n);
    for (i = 0; how == 1 && i < found; i++) {
        int32_t const last = n - 1 - i, k = (int32_t)below(s, (uint32_t)last + 1), was = names[k];
        names[k] = names[last];
        names[last] = was;
    }
    for (i = 0, at = 0; i < had; i++) if (s->new_id[i] >= 0) s->new_id[i] = names[at++];
    follow(s, n);
    if (s->failures) return;
    for (i = 0; i < found; i++) {
        add_particle(s, names[n - found + i], place[i], place[i][3]);
        s->by_x[n - found + i] = names[n - found + i];
    }
    s->inserted += found;
    s->deleted += go;
    if (s->n > s->most_ever) s->most_ever = s->n;
}

/* ------------------------------------------------------------------------------------------------
   >>upkeep: files, reserves, memory given back
   ---------------------------------------------------------------------------------------------- */

static void file_of(soak *s, int64_t size)
{
    if (size <= 0 || (size_t)size <= s->file_room) return;
    free(s->file);
    s->file_room = (size_t)size;
    s->file = (unsigned char *)take(s->file_room, 1);
}

/* Through a file into another layout: it must be what it was, to the byte. */
static void through_file(soak *s)
{
    float const skin = s->list.desc.skin;
    int64_t size = 0, again = 0, total = s->list.total;
    uint64_t before;
    nlist_result r;
    (void)nlist_save(&s->list, NULL, 0, &size);
    file_of(s, 2 * size);
    r = nlist_save(&s->list, s->file, size, &size);
    if (r != NLIST_OK) { fail(s, "nlist_save: %s", nlist_result_text(r)); return; }
    random_list(s);
    s->desc.skin = skin == 0 || one_in(s, 3) ? 0 : one_in(s, 2) ? skin : skin / 2;
    before = (uint64_t)below(s, 4);
    if (before == 1) { nlist_free(&s->list); s->frees++; }
    if (before == 2 || before == 3) {
        nlist_desc desc = s->desc;
        if (before == 3) { nlist_free(&s->list); s->frees++; }
        note_size(s, desc.width > 8 ? desc.width : 8,
                  total + 1000 > desc.capacity ? total + 1000 : desc.capacity);
        r = nlist_reserve(&s->list, &desc, s->n + (int32_t)below(s, 100), total + below(s, 1000));
        if (r != NLIST_OK) fail(s, "nlist_reserve: %s", nlist_result_text(r));
        s->reserves++;
    }
    r = nlist_load(&s->list, &s->desc, s->file, size);
    if (r == NLIST_ROW_FULL) {
        s->refused++;
        s->desc.width = s->list.needed_width;
        r = nlist_load(&s->list, &s->desc, s->file, size);
    }
    if (r == NLIST_LIST_FULL) {
        s->refused++;
        s->desc.capacity = s->list.needed_entries;
        r = nlist_load(&s->list, &s->desc, s->file, size);
    }
    if (r != NLIST_OK) { fail(s, "nlist_load: %s", nlist_result_text(r)); return; }
    if (s->desc.skin == skin) {
        r = nlist_save(&s->list, s->file + size, size, &again);
        if (r != NLIST_OK || again != size || memcmp(s->file, s->file + size, (size_t)size) != 0)
            fail(s, "a list that was loaded is saved differently");
    }
    note_size(s, s->list.desc.width, s->list.rows[s->list.current].capacity);
    if (s->list.total != total)
        fail(s, "%ld entries were saved, %ld loaded", (long)total, (long)s->list.total);
    s->saves++;
}

/* The tree is collapsed, saved, loaded into the same memory, and has what the tree has. */
static void wide_through_file(soak *s)
{
    lbvh_wide_desc desc;
    lbvh_wide wide;
    int64_t size = 0;
    lbvh_result r;
    memset(&desc, 0, sizeof desc);
    memset(&wide, 0, sizeof wide);
    desc.leaf = 1 + (int32_t)below(s, 4);
    desc.allocator = s->tree.desc.allocator;
    r = lbvh_wide_build(&wide, &desc, &s->tree, NULL, 0);
    if (r == LBVH_OK) (void)lbvh_wide_save(&wide, NULL, 0, &size);
    if (r == LBVH_OK) file_of(s, size);
    if (r == LBVH_OK) r = lbvh_wide_save(&wide, s->file, size, &size);
    if (r == LBVH_OK) r = lbvh_wide_load(&wide, &desc, s->file, size);
    if (r == LBVH_OK) r = lbvh_wide_validate(&wide, &s->tree);
    if (r != LBVH_OK) fail(s, "a wide tree through a file: %s", lbvh_result_text(r));
    lbvh_wide_free(&wide);
}

static void tree_through_file(soak *s)
{
    lbvh_desc desc = tree_desc(s);
    int64_t size = 0;
    lbvh_result r;
    int32_t bad;
    if (s->tree.n == 0) return;
    (void)lbvh_save(&s->tree, NULL, 0, &size);
    file_of(s, size);
    r = lbvh_save(&s->tree, s->file, size, &size);
    if (r != LBVH_OK) { fail(s, "lbvh_save: %s", lbvh_result_text(r)); return; }
    if (one_in(s, 2)) { lbvh_free(&s->tree); s->frees++; }
    r = lbvh_load(&s->tree, &desc, s->file, size);
    if (r != LBVH_OK) { fail(s, "lbvh_load: %s", lbvh_result_text(r)); return; }
    if (lbvh_verify(&s->tree, 100, (uint32_t)s->step, &bad) != LBVH_OK)
        fail(s, "a loaded tree finds others for %d", (int)bad);
    wide_through_file(s);
    s->tree_saves++;
}

static void reserve_sources(soak *s)
{
    if (one_in(s, 2)) {
        lbvh_desc const desc = tree_desc(s);
        lbvh_result const r =
            lbvh_reserve(&s->tree, &desc, (int32_t)below(s, (uint32_t)s->most + 1));
        if (r != LBVH_OK) fail(s, "lbvh_reserve: %s", lbvh_result_text(r));
    } else {
        ugrid_desc desc = random_cells(s, 1);
        ugrid_result r;
        desc.walk = UGRID_WALK_AUTO;
        desc.max[0] = s->scene == DRUM ? s->drum : s->size[0];
        desc.max[1] = s->scene == DRUM ? s->drum : s->size[1];
        desc.max[2] = s->size[2];
        r = ugrid_reserve(&s->grid, &desc, (int32_t)below(s, (uint32_t)s->most + 1));
        if (r != UGRID_OK) fail(s, "ugrid_reserve: %s", ugrid_result_text(r));
    }
    s->reserves++;
}

/* Anything may happen to the list before a step. */
static void upkeep(soak *s)
{
    if (one_in(s, s->scene == DAM ? 30 : 100)) come_and_go(s);
    if (!s->failures && one_in(s, 120)) sort_particles(s);
    if (!s->failures && one_in(s, 250)) through_file(s);
    if (!s->failures && one_in(s, 200)) random_list(s);
    if (!s->failures && one_in(s, 300)) tree_through_file(s);
    if (!s->failures && one_in(s, 400)) reserve_sources(s);
    if (one_in(s, 2000)) { ugrid_free(&s->grid); s->frees++; }
    if (one_in(s, 2000)) { lbvh_free(&s->tree); s->frees++; }
}

/* ------------------------------------------------------------------------------------------------
   >>checks
   ---------------------------------------------------------------------------------------------- */

/* The same number of contacts, and the same first steps? */
static void check_sums(soak *s)
{
    if (s->list_touching == s->touching && s->list_sum == s->sum) return;
    if (s->list_touching != s->touching)
        fail(s, "%ld pairs touch, the list has %ld of them", (long)s->touching,
             (long)s->list_touching);
}

/* Every entry that touches, against the model. */
static void check_contacts(soak *s)
{
    int64_t found = 0;
    float d[3], d2;
    int32_t i;
    for (i = 0; i < s->n && !s->failures; i++) {
        nlist_each e = nlist_of(&s->list, i);
        while (nlist_next(&e)) {
            const bytes_kept *kept = (const bytes_kept *)e.history;
            const known *k;
            if (!touch(s, i, e.id, d, &d2)) continue;
            k = look_up(s, s->table, key_of(s->uid[i], s->uid[e.id]));
            found++;
            if (!k->key || k->seen != s->step)
                fail(s, "uids %d and %d touch, and the model does not know", (int)s->uid[i],
                     (int)s->uid[e.id]);
            else if (kept->began != k->began || kept->own != s->uid[i] ||
                     kept->partner != s->uid[e.id])
                fail(s,
                     "uids %d and %d have touched since step %d; their bytes say %d, of %d and %d",
                     (int)s->uid[i], (int)s->uid[e.id], (int)k->began, (int)kept->began,
                     (int)kept->own, (int)kept->partner);
        }
    }
    if (found != s->touching * (s->full ? 2 : 1))
        fail(s, "%ld pairs touch, the list has %ld of them", (long)s->touching, (long)found);
    s->compared += found;
}

/* What objects hold is what their allocators gave, and at most about twice what the manuals say
   that the largest of them took. */
static void check_memory(soak *s)
{
    int64_t const n = s->most + 100, h = (int64_t)sizeof(bytes_kept);
    int64_t const list =
        2 * (200 * n + 2 * n * s->widest * (4 + h) + s->most_entries * (2 * (12 + h) + 64)) + 65536;
    int64_t const tree = 2 * 100 * n + 65536,
                  grid = 2 * (48 * n * (s->most_spans ? s->most_spans : 1) + 8 * s->most_cells) +
                         (4 << 20);
    if (s->list_memory.live > list)
        fail(s, "the list holds %ld bytes, more than %ld", (long)s->list_memory.live, (long)list);
    if (s->tree_memory.live > tree)
        fail(s, "the tree holds %ld bytes, more than %ld", (long)s->tree_memory.live, (long)tree);
    if (s->grid_memory.live > grid)
        fail(s, "the grid holds %ld bytes, more than %ld", (long)s->grid_memory.live, (long)grid);
    if (ugrid_bytes(&s->grid) != s->grid_memory.live)
        fail(s, "the grid says %ld bytes, its allocator %ld", (long)ugrid_bytes(&s->grid),
             (long)s->grid_memory.live);
    if (lbvh_bytes(&s->tree) != s->tree_memory.live)
        fail(s, "the tree says %ld bytes, its allocator %ld", (long)lbvh_bytes(&s->tree),
             (long)s->tree_memory.live);
    if (nlist_bytes(&s->list) != s->list_memory.live)
        fail(s, "the list says %ld bytes, its allocator %ld", (long)nlist_bytes(&s->list),
             (long)s->list_memory.live);
}

static void check_particles(soak *s)
{
    double energy = energy_in_contacts(s), gain;
    int32_t i;
    int a;
    for (i = 0; i < s->n; i++) {
        const float *p = s->rec + 4 * (size_t)i;
        energy += energy_of(s, i);
        for (a = 0; a < 3; a++) {
            float const low = s->scene == DRUM && a < 2 ? -s->drum : 0,
                        high = s->scene == DRUM && a < 2 ? s->drum : s->size[a];
            if (!(p[a] > low - s->largest && p[a] < high + s->largest)) {
                fail(s, "particle %d is at %g %g %g", (int)i, (double)p[0], (double)p[1],
                     (double)p[2]);
                return;
            }
        }
    }
    gain = energy - s->energy - s->work;
    if (s->have_energy && gain / energy > s->greatest_gain) s->greatest_gain = gain / energy;
    if (s->have_energy && gain > 0.01 * energy)
        fail(s, "energy %g came from nowhere; there was %g, and %g was added", gain, s->energy,
             s->work);
    s->energy = energy;
    s->work = 0;
    s->have_energy = 1;
}

static void check_grid(soak *s)
{
    int32_t bad = -1;
    ugrid_result const r =
        ugrid_verify(&s->grid, between(s, 0.2f, 2.2f) * s->largest, s->n, (uint32_t)s->step, &bad);
    if (r != UGRID_OK) fail(s, "ugrid_verify: %s, particle %d", ugrid_result_text(r), (int)bad);
}

static void check_tree(soak *s)
{
    int32_t bad = -1;
    lbvh_result const r = lbvh_verify(&s->tree, s->n, (uint32_t)s->step, &bad);
    if (r != LBVH_OK) fail(s, "lbvh_verify: %s, element %d", lbvh_result_text(r), (int)bad);
}

/* As the list is; then built at these positions, all of it against brute force; and the contacts
   again. */
static void check_all(soak *s)
{
    nlist_desc desc;
    nlist_result r;
    int32_t bad = -1;
    int source;
    model_brute(s);
    check_contacts(s);
    check_particles(s);
    if (s->failures) return;
    source = build_list(s);
    if (s->failures) return;
    desc = s->desc;
    desc.radii = s->radii;
    r = nlist_verify(&s->list, &desc, s->rec, 16, s->n, (uint32_t)s->step, &bad);
    if (r != NLIST_OK) fail(s, "nlist_verify: %s, particle %d", nlist_result_text(r), (int)bad);
    s->verified_rows += s->n;
    check_contacts(s);
    if (source == BY_TREE || source == BY_REFIT || source == BY_STALE) check_tree(s);
    else if (source == BY_BRUTE) build_grid(s, 0);
    if (!s->failures && (source == BY_GRID || source == BY_BRUTE)) check_grid(s);
    check_memory(s);
    s->checks++;
}

/* ------------------------------------------------------------------------------------------------
   >>run
   ---------------------------------------------------------------------------------------------- */

static void forces(soak *s)
{
    nlist_sums how;
    nlist_result r;
    memset(&how, 0, sizeof how);
    how.values = 6;
    how.mode = (nlist_mode)below(s, 4);
    if (one_in(s, 4)) how.unit = 1.0 / (1 << 26);
    s->list_touching = 0;
    s->list_sum = 0;
    memset(s->sums, 0, (size_t)s->n * 6 * sizeof *s->sums);
    r = nlist_sum(&s->list, &how, contact, s, s->sums);
    if (r == NLIST_BAD_WIDTH) {
        how.mode = NLIST_AUTO;
        r = nlist_sum(&s->list, &how, contact, s, s->sums);
    }
    if (r != NLIST_OK) fail(s, "nlist_sum: %s", nlist_result_text(r));
    s->sums_in_units += how.unit > 0;
}

static void one_step(soak *s, int32_t check)
{
    int32_t moved = 1;
    s->step++;
    turn_gravity(s);
    if (s->step > 1) upkeep(s); /* the first step makes the list */
    if (s->failures) return;
    if (s->list.desc.skin > 0 && !one_in(s, 50)) {
        nlist_result const r = nlist_moved(&s->list, s->rec, 16, &moved);
        if (r != NLIST_OK) fail(s, "nlist_moved: %s", nlist_result_text(r));
    }
    if (moved) (void)build_list(s);
    else s->kept++;
    if (s->failures) return;
    model_step(s);
    forces(s);
    check_sums(s);
    if (!s->failures && s->list_sum != s->sum) {
        check_contacts(s); /* names the pair */
        fail(s, "the sum of the first steps is not the model's");
    }
    if (!s->failures && s->step % check == 0) check_all(s);
    if (!s->failures) move(s);
}

static void begin(soak *s, int32_t particles)
{
    size_t const n = (size_t)particles;
    int32_t i;
    uint32_t entries = 1024;
    s->random = wl_seed(s->seed);
    s->most = s->target = particles;
    s->rec = (float *)take(4 * n, sizeof(float));
    s->radii = (float *)take(n, sizeof(float));
    s->vel = (float *)take(3 * n, sizeof(float));
    s->spin = (float *)take(3 * n, sizeof(float));
    s->boxes = (float *)take(6 * n, sizeof(float));
    s->sums = (float *)take(6 * n, sizeof(float));
    s->uid = (int32_t *)take(n, sizeof(int32_t));
    s->by_x = (int32_t *)take(n, sizeof(int32_t));
    s->new_id = (int32_t *)take(n, sizeof(int32_t));
    s->names = (int32_t *)take(n, sizeof(int32_t));
    s->spare = (unsigned char *)take(n, 16);
    while (entries < 32 * (uint32_t)particles) entries *= 2;
    s->table = (known *)take(entries, sizeof(known));
    s->other_table = (known *)take(entries, sizeof(known));
    s->table_mask = entries - 1;
    s->next_uid = 1;
    s->largest = 1;
    s->smallest = s->scene == DRUM ? 1.0f / 3 : 0.1f;
    s->dt = 0.005f * s->smallest;
    if (s->scene == DRUM) {
        s->size[2] = 12;
        s->drum = sqrtf(1.55f * (float)particles / (3.14159f * s->size[2] * 0.21f));
        s->size[0] = s->size[1] = 2 * s->drum;
        s->gravity[1] = -1;
    } else {
        float const edge = cbrtf(0.025f * (float)particles / 0.6f / 4.8f);
        s->size[0] = 4 * (edge > 2.5f ? edge : 2.5f);
        s->size[1] = s->size[0] / 4;
        s->size[2] = 3 * s->size[1];
        s->gravity[2] = -4;
    }
    for (i = 0; i < particles; i++) { /* the large ones first: they would find no place later */
        float const r = s->scene == DRUM          ? random_radius(s)
                        : i < 1 + particles / 200 ? s->largest
                                                  : s->smallest;
        float p[3];
        if (!free_place(s, r, 1, i, p)) { fail(s, "no place for particle %d", (int)i); return; }
        add_particle(s, i, p, r);
        s->by_x[i] = i;
    }
    s->n = s->most_ever = particles;
    s->desc.half = !s->full;
    s->desc.history = (int32_t)sizeof(bytes_kept);
    if (s->scene == DRUM) {
        s->desc.periodic[2] = 1;
        s->desc.max[2] = s->size[2];
    }
    s->desc.allocator.alloc = account_alloc;
    s->desc.allocator.free = account_free;
    s->desc.allocator.user = &s->list_memory;
    /* what files of this many will take, resident from the start */
    file_of(s, (int64_t)particles * 1000);
}

static uint64_t state_hash(const soak *s)
{
    uint64_t h = (uint64_t)s->step;
    size_t k;
    const unsigned char *at = (const unsigned char *)s->rec;
    for (k = 0; k < (size_t)s->n * 16; k++) h = h * 0x100000001B3u ^ at[k];
    return mixed(h ^ (uint64_t)s->compared);
}

static void end(soak *s)
{
    ugrid_free(&s->grid);
    lbvh_free(&s->tree);
    nlist_free(&s->list);
    if (held(s) != 0 || s->grid_memory.blocks || s->tree_memory.blocks || s->list_memory.blocks)
        fail(s, "%ld bytes are left after all was freed", (long)held(s));
    free(s->rec);
    free(s->radii);
    free(s->vel);
    free(s->spin);
    free(s->boxes);
    free(s->sums);
    free(s->uid);
    free(s->by_x);
    free(s->new_id);
    free(s->names);
    free(s->spare);
    free(s->table);
    free(s->other_table);
    free(s->file);
}

static void print_minute(const soak *s, double elapsed)
{
    printf("%5.1f min  CPU %.0f s  step %d  n %d  contacts %ld  checks %ld  held KiB grid %ld tree "
           "%ld list %ld  resident %ld KiB  allocations %ld\n",
           elapsed / 60, (double)clock() / CLOCKS_PER_SEC, (int)s->step, (int)s->n,
           (long)s->touching, (long)s->checks, (long)s->grid_memory.live / 1024,
           (long)s->tree_memory.live / 1024, (long)s->list_memory.live / 1024,
           (long)resident() / 1024,
           (long)(s->grid_memory.calls + s->tree_memory.calls + s->list_memory.calls));
    fflush(stdout);
}

/* Resident at the end against after the first tenth: 5 % and 2 MiB more (free holes between
   blocks), and what larger objects explain: their bytes are counted, and bounded by
   check_memory. */
static void judge_memory(soak *s)
{
    int64_t const allowed = s->rss_first + s->rss_first / 20 + (2 << 20) +
                            (s->held_most > s->held_first ? s->held_most - s->held_first : 0);
    if (SOAK_ASAN || s->failures || s->rss_first == 0) return;
    if (s->rss_last > allowed)
        fail(s,
             "resident: %ld KiB after the first tenth, %ld at the end, of which larger objects "
             "explain %ld",
             (long)s->rss_first / 1024, (long)s->rss_last / 1024,
             (long)(s->held_most - s->held_first) / 1024);
}

static void print_summary(const soak *s, double elapsed)
{
    printf("scene %s, seed %u, %s lists, %.1f minutes (CPU %.0f s), %d steps, n %d of at most %d\n",
           s->scene == DRUM ? "drum" : "dam", (unsigned)s->seed, s->full ? "full" : "half",
           elapsed / 60, (double)clock() / CLOCKS_PER_SEC, (int)s->step, (int)s->n, (int)s->most);
    printf("  lists built    %ld: grid %ld, tree %ld, refitted %ld, out of date %ld, brute force "
           "%ld; kept by the skin in %ld steps\n",
           (long)(s->builds[0] + s->builds[1] + s->builds[2] + s->builds[3] + s->builds[4]),
           (long)s->builds[BY_GRID], (long)s->builds[BY_TREE], (long)s->builds[BY_REFIT],
           (long)s->builds[BY_STALE], (long)s->builds[BY_BRUTE], (long)s->kept);
    printf("  layouts drawn  %ld; lists saved and loaded %ld, trees %ld; reserves %ld, freed %ld, "
           "refused and tried again %ld\n",
           (long)s->layouts, (long)s->saves, (long)s->tree_saves, (long)s->reserves, (long)s->frees,
           (long)s->refused);
    printf("  sorted         %ld: by grid %ld, by tree %ld, shuffled %ld; remaps %ld; inserted "
           "%ld, deleted %ld\n",
           (long)(s->sorts[0] + s->sorts[1] + s->sorts[2]), (long)s->sorts[0], (long)s->sorts[1],
           (long)s->sorts[2], (long)s->remaps, (long)s->inserted, (long)s->deleted);
    printf("  contacts       %ld began; every step's sum compared; checks %ld: %ld contacts and "
           "%ld rows one by one\n",
           (long)s->contacts_begun, (long)s->checks, (long)s->compared, (long)s->verified_rows);
    printf("  energy         greatest gain between two checks %.4f %%; sums in units %ld\n",
           100 * s->greatest_gain, (long)s->sums_in_units);
    printf("  memory KiB     resident %ld after a tenth, %ld at the end; held %ld and %ld, most "
           "%ld; allocations %ld\n",
           (long)s->rss_first / 1024, (long)s->rss_last / 1024, (long)s->held_first / 1024,
           (long)held(s) / 1024, (long)s->held_most / 1024,
           (long)(s->grid_memory.calls + s->tree_memory.calls + s->list_memory.calls));
    printf("  state          %016llx\n", (unsigned long long)state_hash(s));
}

/* The first tenth: the most that was resident in it. */
static void first_tenth(soak *s, double part)
{
    int64_t const now = resident();
    if (part > 0.1 && s->rss_first) return;
    if (now > s->rss_first) s->rss_first = now;
    if (held(s) > s->held_first) s->held_first = held(s);
}

int main(int argc, char **argv)
{
    static soak s;
    double minutes = 1, start, elapsed = 0, printed = 0;
    int32_t check = 200, particles = 2000, steps = 0;
    int k;
    s.seed = 1;
    for (k = 1; k < argc; k++) {
        const char *value = k + 1 < argc ? argv[k + 1] : "";
        if (!strcmp(argv[k], "--full")) { s.full = 1; continue; }
        if (!strcmp(argv[k], "--scene") && (!strcmp(value, "drum") || !strcmp(value, "dam")))
            s.scene = strcmp(value, "drum") ? DAM : DRUM;
        else if (!strcmp(argv[k], "--minutes")) minutes = atof(value);
        else if (!strcmp(argv[k], "--steps")) steps = (int32_t)atoi(value);
        else if (!strcmp(argv[k], "--seed")) s.seed = (uint32_t)strtoul(value, NULL, 10);
        else if (!strcmp(argv[k], "--particles")) particles = (int32_t)atoi(value);
        else if (!strcmp(argv[k], "--check")) check = (int32_t)atoi(value);
        else {
            puts("soak --scene drum|dam [--minutes 1] [--steps 0] [--seed 1] [--particles 2000] "
                 "[--check 200] [--full]");
            return 2;
        }
        k++;
    }
    if (particles < 50 || particles > 100000 || check < 1 || !(minutes > 0)) {
        puts("particles 50 .. 100000, check and minutes positive");
        return 2;
    }
    signal(SIGINT, stop); /* an end as any other, with a summary */
    signal(SIGTERM, stop);
    begin(&s, particles);
    start = seconds();
    while (!s.failures) {
        double part;
        one_step(&s, check);
        if (held(&s) > s.held_most) s.held_most = held(&s);
        if (s.step == INT32_MAX - 1 || s.next_uid > INT32_MAX - 1000) break;
        if (s.step % 16 && !(steps && s.step == steps)) continue;
        elapsed = seconds() - start;
        part = steps ? (double)s.step / steps : elapsed / (60 * minutes);
        first_tenth(&s, part);
        if (elapsed - printed >= 60) {
            print_minute(&s, elapsed);
            printed += 60;
        }
        if (part >= 1 || stopped) break;
    }
    s.rss_last = resident();
    judge_memory(&s);
    print_summary(&s, elapsed);
    end(&s);
    printf("  failures       %d\n", s.failures);
    return s.failures != 0;
}
