/* plain_bits.h - a sum over all bits of many lists, which is the same with NLIST_PLAIN and without.
   SPDX-License-Identifier: MIT OR Unlicense

   test_nlist_plain.c compares it where the header is compiled with NLIST_PLAIN, and
   test_nlist_parallel.c where it is not, serially and in tasks: so both make the same lists, with
   the same history and events. Who changes what a list holds, on purpose, sets the sums anew: a
   failing run prints the one that it got. */

#if NLIST_I_REAL_KIND == 1
#define PLAIN_BITS UINT64_C(0x7e71e6a4e79da3ef)
#else
#define PLAIN_BITS UINT64_C(0xe46c77432603f6ab)
#endif

enum { PLAIN_MOST = 300, PLAIN_STEPS = 3 };
enum { PLAIN_SIDE = 9, PLAIN_WALLS = 2 * PLAIN_SIDE * PLAIN_SIDE };
enum { PLAIN_HALF = 1, PLAIN_RADII = 2, PLAIN_MASKS = 4, PLAIN_EXCLUDE = 8, PLAIN_GHOSTS = 16,
       PLAIN_HISTORY = 32, PLAIN_SKIN = 64, PLAIN_PERIODIC = 128, PLAIN_OPTIONS = 256 };

typedef struct plain_scene {
    uint32_t dice;
    nlist_desc desc;
    ugrid_desc cells;
    nlist_real pos[3 * PLAIN_MOST], radii[PLAIN_MOST];
    uint32_t masks[PLAIN_MOST];
    int64_t exclude_start[PLAIN_MOST + 1];
    int32_t exclude[PLAIN_MOST], new_id[PLAIN_MOST];
} plain_scene;

/* 0 .. 1, a multiple of 2^-24: the same number in float and double. */
static nlist_real plain_roll(plain_scene *s)
{
    s->dice = s->dice * 1664525u + 1013904223u; /* Knuth, by Numerical Recipes */
    return (nlist_real)(s->dice >> 8) / 16777216;
}

static void plain_add(uint64_t *sum, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t k;
    for (k = 0; k < size; k++) *sum = (*sum ^ at[k]) * UINT64_C(1099511628211); /* FNV-1a */
}

static void plain_make(plain_scene *s, int options, nlist_layout layout, ugrid_method method)
{
    nlist_desc *d = &s->desc;
    int32_t i;
    int a;
    memset(s, 0, sizeof *s);
    s->dice = (uint32_t)options;
    for (i = 0; i < 3 * PLAIN_MOST; i++) s->pos[i] = plain_roll(s);
    for (i = 0; i < PLAIN_MOST; i++) {
        s->radii[i] = plain_roll(s) / 32;
        s->masks[i] = 1u << i % 3 | 1u << i % 4;
        s->exclude_start[i + 1] = i + 1;
        s->exclude[i] = (i + 1) % PLAIN_MOST;
        s->new_id[i] = i * 7 % PLAIN_MOST;
    }
    d->layout = layout;
    d->radius = (nlist_real)0.09375;
    d->grow = 1;
    d->width = layout == NLIST_STATIC || layout == NLIST_HYBRID ? 4 : 0;
    d->half = options & PLAIN_HALF;
    d->skin = options & PLAIN_SKIN ? (nlist_real)0.015625 : 0;
    if (options & PLAIN_RADII) d->radii = s->radii;
    if (options & PLAIN_MASKS) d->masks = s->masks;
    if (options & PLAIN_EXCLUDE) d->exclude_start = s->exclude_start, d->exclude = s->exclude;
    if (options & PLAIN_GHOSTS) d->rows = 200;
    if (options & PLAIN_HISTORY) d->history = 8, d->events = 1;
    for (a = 0; a < 3; a++) {
        s->cells.max[a] = 1;
        s->cells.periodic[a] = options & PLAIN_PERIODIC ? 1 : 0;
    }
    s->cells.cell = (nlist_real)0.125;
    s->cells.method = method;
}

/* Adds all rows, their history and the events of a list, and writes the history anew. */
static void plain_add_list(uint64_t *sum, const nlist *list)
{
    const nlist_rows *rows = &list->rows[list->current];
    int32_t i;
    int kind;
    plain_add(sum, &list->total, sizeof list->total);
    plain_add(sum, rows->count, (size_t)rows->n * sizeof *rows->count);
    if (rows->start) plain_add(sum, rows->start, ((size_t)rows->n + 1) * sizeof *rows->start);
    if (rows->slot)
        plain_add(sum, rows->slot, (size_t)rows->n * (size_t)rows->width * sizeof *rows->slot);
    if (rows->partner)
        plain_add(sum, rows->partner, (size_t)rows->entries * sizeof *rows->partner);
    if (rows->link) plain_add(sum, rows->link, (size_t)rows->entries * sizeof *rows->link);
    if (rows->touched)
        plain_add(sum, rows->touched, (size_t)rows->touched_count * sizeof *rows->touched);
    if (rows->uid) plain_add(sum, rows->uid, (size_t)list->n * sizeof *rows->uid);
    if (rows->reference)
        plain_add(sum, rows->reference, 3 * (size_t)list->n * sizeof *rows->reference);
    for (i = 0; i < (rows->history ? rows->n : 0); i++) {
        nlist_each e = nlist_of(list, i);
        while (nlist_next(&e)) {
            uint64_t bytes;
            memcpy(&bytes, e.history, sizeof bytes);
            plain_add(sum, &bytes, sizeof bytes);
            bytes = bytes * 31 + (uint64_t)i * 1000 + (uint64_t)e.id + 1;
            memcpy(e.history, &bytes, sizeof bytes);
        }
    }
    for (kind = 0; kind < (list->desc.events ? NLIST_EVENT_KINDS : 0); kind++) {
        int64_t k;
        for (k = 0; k < list->event_count[kind]; k++) {
            const nlist_event *event = &list->event[kind][k];
            plain_add(sum, &event->i, sizeof event->i);
            plain_add(sum, &event->j, sizeof event->j);
            plain_add(sum, &event->entry, sizeof event->entry);
        }
    }
}

/* A list from a tree of points, or of their boxes of some size. */
static void plain_tree(const plain_scene *s, nlist *list, lbvh *tree, int options)
{
    lbvh_desc points;
    nlist_desc desc = s->desc;
    int a;
    memset(&points, 0, sizeof points);
    points.kind = LBVH_POINTS;
    points.radius = (nlist_real)(options % 3) / 32;
    for (a = 0; a < 3; a++) {
        desc.periodic[a] = s->cells.periodic[a];
        desc.max[a] = 1;
    }
    CHECK(lbvh_build(tree, &points, s->pos, 0, PLAIN_MOST) == LBVH_OK);
    CHECK(nlist_build_lbvh(list, &desc, tree, s->pos, 0, PLAIN_MOST) == NLIST_OK);
}

/* A floor of PLAIN_SIDE squares along each axis, uneven, through the middle of the cube. */
static void plain_floor(nlist_real *corners)
{
    static const int part[2][3][2] = {{{0, 0}, {1, 0}, {0, 1}}, {{1, 1}, {0, 1}, {1, 0}}};
    int t, k;
    for (t = 0; t < PLAIN_WALLS; t++)
        for (k = 0; k < 3; k++, corners += 3) {
            int const x = t / 2 % PLAIN_SIDE + part[t % 2][k][0],
                      y = t / 2 / PLAIN_SIDE + part[t % 2][k][1];
            corners[0] = (nlist_real)x / 8;
            corners[1] = (nlist_real)y / 8;
            corners[2] = (nlist_real)(32 + (x * 5 + y * 3) % 7) / 64;
        }
}

/* A list of particles and triangles. Thickness and masks of a triangle are those of a particle. */
static void plain_walls(const plain_scene *s, nlist *list, int options)
{
    nlist_real corners[9 * PLAIN_WALLS];
    lbvh tree;
    lbvh_desc triangles;
    nlist_desc desc = s->desc;
    nlist_mesh mesh;
    memset(&tree, 0, sizeof tree);
    memset(&triangles, 0, sizeof triangles);
    memset(&mesh, 0, sizeof mesh);
    plain_floor(corners);
    triangles.kind = LBVH_TRIANGLES;
    mesh.vertices = corners;
    mesh.triangles = PLAIN_WALLS;
    if (options % 3 == 1) mesh.thickness = s->radii;
    if (options % 5 < 3) mesh.masks = s->masks;
    desc.layout = NLIST_DYNAMIC;
    desc.width = 0;
    desc.half = 0;
    desc.exclude_start = NULL;
    desc.exclude = NULL;
    if (options % 7 < 4) desc.radius /= 4;
    CHECK(lbvh_build(&tree, &triangles, corners, 0, PLAIN_WALLS) == LBVH_OK);
    CHECK(nlist_build_mesh(list, &desc, &tree, &mesh, s->pos, 0, PLAIN_MOST) == NLIST_OK);
    CHECK(list->total > 0);
    lbvh_free(&tree);
}

/* Builds while particles move, then a remap, and another build. */
static void plain_live(uint64_t *sum, plain_scene *s, nlist_parallel parallel, int options)
{
    nlist list, by_tree, walls;
    ugrid grid;
    lbvh tree;
    int32_t i, step;
    memset(&list, 0, sizeof list);
    memset(&by_tree, 0, sizeof by_tree);
    memset(&walls, 0, sizeof walls);
    memset(&grid, 0, sizeof grid);
    memset(&tree, 0, sizeof tree);
    s->desc.parallel = parallel;
    for (step = 0; step < PLAIN_STEPS; step++) {
        CHECK(ugrid_build(&grid, &s->cells, s->pos, 0, PLAIN_MOST) == UGRID_OK);
        CHECK(nlist_build_ugrid(&list, &s->desc, &grid, s->pos, 0, PLAIN_MOST) == NLIST_OK);
        plain_add_list(sum, &list);
        plain_tree(s, &by_tree, &tree, options);
        plain_add_list(sum, &by_tree);
        plain_walls(s, &walls, options);
        plain_add_list(sum, &walls);
        if (step == 1) {
            CHECK(nlist_remap(&list, s->new_id, PLAIN_MOST) == NLIST_OK);
            plain_add_list(sum, &list);
        }
        for (i = 0; i < 3 * PLAIN_MOST; i++) {
            nlist_real const x = s->pos[i] + (plain_roll(s) - (nlist_real)0.5) / 32;
            if (x >= 0 && x < 1) s->pos[i] = x;
        }
    }
    nlist_free(&list);
    nlist_free(&by_tree);
    nlist_free(&walls);
    ugrid_free(&grid);
    lbvh_free(&tree);
}

/* The sum, of lists that are made with this hook. */
static uint64_t plain_bits(nlist_parallel parallel)
{
    static const ugrid_method methods[4] = {UGRID_SORT, UGRID_COUNT, UGRID_LIST, UGRID_FIXED};
    static plain_scene scene;
    uint64_t sum = UINT64_C(14695981039346656037);
    int options;
    for (options = 0; options < PLAIN_OPTIONS; options++) {
        plain_make(&scene, options, (nlist_layout)(options / 3 % 4), methods[options / 5 % 4]);
        scene.cells.slots = 32;
        scene.cells.deterministic = 1;
        plain_live(&sum, &scene, parallel, options);
    }
    return sum;
}

static void plain_check(nlist_parallel parallel)
{
    uint64_t const sum = plain_bits(parallel);
    if (sum != PLAIN_BITS)
        print_error("the sum of all bits is 0x%08x%08x\n", (unsigned)(sum >> 32), (unsigned)sum);
    CHECK(sum == PLAIN_BITS);
}
