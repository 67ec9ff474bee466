/* test_faults.cu - whole programs on the GPU that run out of memory, lose launches, or come upon an
   error that other code left unread.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/all/test_faults.cu -o test_faults &&
       ./test_faults
       ./test_faults --every 3 --only memory        every third fault; tests whose names hold a word

   The same file runs on the CPU under tests/emu. Nothing but CUDA and the C++ library is needed.
   tests/unit/all/test_faults.c is the same for the serial half; the other tests here have the calls
   of each header one by one.

   A program is a row of steps with all four headers on one heap. It runs once without a fault, and
   what each step leaves behind is noted (all builds are deterministic). Then, for every k, fault
   number k happens, and the step it belongs to
   - returns a code of its own, and changes no other object;
   - leaves its object as it was or empty, as the comment says;
   - does the same again when it is called again, and everything from there on is as in the first
   run, bit for bit. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#include "nlist.h"
#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "nbody.h"
#define TESTED ugrid
#include "../testing.h"

static int every = 1, kinds;    /* every how manyth fault; kinds of programs */

/* ------------------------------------------------------------------------------------------------
   The program
   ---------------------------------------------------------------------------------------------- */

enum { FEW = 9, SOME = 24, MANY = 80, TRIANGLES = 18, PER = 48 };

enum Object { GRID, TREE, WALLS, COPY, LIST, CONTACTS, LOADED, BODIES, OBJECTS };

/* What the host prepares once for each kind: numbers, and a tree and a list to be sent to the
   device. */
struct Input {
    int kind;
    std::vector<real> pos, moved, plane, mass, corner;
    std::vector<int32_t> names;
    ugrid_desc of_grid = {};
    lbvh_desc of_tree = {}, of_walls = {};
    nlist_desc of_list = {}, of_contacts = {};
    nbody_desc of_bodies = {};
    lbvh tree = {};
    nlist list = {};
    explicit Input(int k);
    ~Input()
    {
        lbvh_free(&tree);
        nlist_free(&list);
    }
    Input(const Input &) = delete;
    Input &operator=(const Input &) = delete;
};

Input::Input(int k) : kind(k)
{
    static const int corners[6][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 0}, {1, 1}, {0, 1}};
    wl_random r = wl_seed((uint64_t)k);
    for (int i = 0; i < 3 * MANY; i++) pos.push_back((real)wl_u(&r));
    for (real x : pos) moved.push_back(x + (real)0.02 * (real)wl_u(&r));
    for (int i = 0; i < 2 * MANY; i++) plane.push_back((real)wl_u(&r));
    for (int i = 0; i < MANY; i++) mass.push_back(1 + (real)wl_u(&r));
    for (int i = 0; i < MANY; i++) names.push_back(MANY - 1 - i);
    for (int i = 0; i < 3 * TRIANGLES; i++) {
        int const t = i / 3, *at = corners[3 * (t % 2) + i % 3];
        corner.push_back((real)(t / 2 % 3 + at[0]) / 3);
        corner.push_back((real)(t / 2 / 3 + at[1]) / 3);
        corner.push_back((real)0.5);
    }
    of_grid.max[0] = of_grid.max[1] = of_grid.max[2] = (real)1.03125;
    of_grid.cell = (real)0.25;
    of_grid.method = (ugrid_method)(UGRID_COUNT + k % 5);
    of_grid.slots = MANY;
    of_grid.deterministic = 1;
    of_grid.periodic[0] = k % 2;
    of_tree.kind = LBVH_POINTS;
    of_tree.radius = (real)0.05;
    of_tree.builder = (lbvh_builder)(k % 2);
    of_walls.kind = LBVH_TRIANGLES;
    of_list.radius = (real)0.2;
    of_list.layout = (nlist_layout)(k % 4);
    of_list.width = of_list.layout == NLIST_STATIC ? MANY : of_list.layout == NLIST_HYBRID ? 2 : 0;
    of_list.deterministic = 1;
    of_list.half = k / 2 % 2;
    of_list.history = k % 2 ? 8 : 0;
    of_list.events = k % 4 == 3;
    of_list.skin = k % 4 > 1 ? (real)0.02 : 0;
    of_list.grow = 1;
    of_contacts.radius = (real)0.3;
    of_contacts.layout = NLIST_DYNAMIC;
    of_contacts.deterministic = of_contacts.grow = 1;
    of_contacts.history = k / 2 % 2 ? 4 : 0;
    of_bodies.method = (nbody_method)(NBODY_DIRECT + k % 3);
    of_bodies.leaf = of_bodies.method == NBODY_DIRECT ? 0 : 4;
    of_bodies.levels = of_bodies.method == NBODY_DIRECT ? 0 : 4;
    of_bodies.stage = (nbody_stage)(k % 4);
    (void)lbvh_build(&tree, &of_tree, moved.data(), 0, MANY);
    (void)nlist_build_brute(&list, &of_list, pos.data(), 0, MANY);
}

struct World {
    const Input &in;
    Heap *heap;
    ugrid_desc of_grid;
    lbvh_desc of_tree, of_walls;
    nlist_desc of_list, of_contacts;
    nbody_desc of_bodies;
    ugrid_cuda grid = {};
    lbvh_cuda tree = {}, walls = {}, copy = {};
    nlist_cuda list = {}, contacts = {}, loaded = {};
    nbody_cuda sim = {};
    ugrid on_host_grid = {};
    lbvh on_host_tree = {};
    nlist on_host_list = {};
    nbody on_host_sim = {};
    nlist_mesh mesh = {};
    Device<real> pos, moved, plane, mass, corner, acc, potential, near2, at, velocity, step_pos,
        step_acc;
    Device<int32_t> names, ids, counts, pairs;
    Device<int64_t> offsets, one;
    World(const Input &of, Heap *h)
        : in(of), heap(h), of_grid(of.of_grid), of_tree(of.of_tree), of_walls(of.of_walls),
          of_list(of.of_list), of_contacts(of.of_contacts), of_bodies(of.of_bodies), pos(of.pos),
          moved(of.moved), plane(of.plane), mass(of.mass), corner(of.corner), acc(2 * MANY),
          potential(MANY), near2(4 * MANY), at(2 * FEW), velocity(2 * MANY), step_pos(2 * MANY),
          step_acc(2 * MANY), names(of.names), ids(PER * MANY), counts(MANY), pairs(PER * MANY),
          offsets(MANY + 1), one(1)
    {
        of_grid.cuda_allocator = {heap_alloc, heap_free, h};
        of_tree.cuda_allocator = of_walls.cuda_allocator = {heap_alloc, heap_free, h};
        of_list.cuda_allocator = of_contacts.cuda_allocator = {heap_alloc, heap_free, h};
        of_bodies.cuda_allocator = {heap_alloc, heap_free, h};
        mesh.vertices = corner.p;
        mesh.triangles = TRIANGLES;
    }
    void free_objects()
    {
        ugrid_cuda_free(&grid);
        for (lbvh_cuda *t : {&tree, &walls, &copy}) lbvh_cuda_free(t);
        for (nlist_cuda *l : {&list, &contacts, &loaded}) nlist_cuda_free(l);
        nbody_cuda_free(&sim);
    }
    ~World()
    {
        free_objects();
        ugrid_free(&on_host_grid);
        lbvh_free(&on_host_tree);
        nlist_free(&on_host_list);
        nbody_free(&on_host_sim);
        MUST(cudaStreamSynchronize(stream));
    }
    int n_of(int object) const
    {
        int const n[OBJECTS] = {grid.device.grid.n,   tree.device.tree.n, walls.device.tree.n,
                                copy.device.tree.n,   list.device.list.n, contacts.device.list.n,
                                loaded.device.list.n, sim.device.sim.n};
        return n[object];
    }
    size_t bytes() const
    {
        size_t sum = 0;
        auto const add = [&sum](const auto &blocks) {
            for (const auto &b : blocks) sum += b.bytes;
        };
        add(grid.block);
        add(grid.scratch);
        for (const lbvh_cuda *t : {&tree, &walls, &copy}) add(t->block), add(t->scratch);
        for (const nlist_cuda *l : {&list, &contacts, &loaded})
            add(l->device.list.block), add(l->scratch);
        add(sim.block);
        add(sim.scratch);
        return sum;
    }
    int32_t error_of(int object) const
    {
        int32_t const e[OBJECTS] = {grid.device.grid.cuda_error,   tree.device.tree.cuda_error,
                                    walls.device.tree.cuda_error,  copy.device.tree.cuda_error,
                                    list.device.list.cuda_error,   contacts.device.list.cuda_error,
                                    loaded.device.list.cuda_error, sim.device.sim.cuda_error};
        return e[object];
    }
    uint64_t sum_of(int object);
    int do_step(int k);
    int search_grid();
    int search_tree();
    int step_bodies();
    int fields();
};

/* ---- what an object holds, as a number ---- */

template <class T> static void mix(uint64_t *sum, const T *array, int64_t count)
{
    const unsigned char *at = (const unsigned char *)array;
    size_t left = array ? (size_t)count * sizeof(T) : 0;
    for (; left > 0; left--, at++) *sum = (*sum ^ *at) * 0x100000001B3u;
}

uint64_t World::sum_of(int object)
{
    uint64_t sum = 0x2545F491;
    int32_t const n = n_of(object);
    mix(&sum, &n, 1);
    if (n == 0) return sum;
    if (object == GRID) {
        const ugrid *g = &on_host_grid;
        ugrid_result const result = ugrid_cuda_download(&on_host_grid, &grid, stream);
        if (result == UGRID_CUDA_ERROR) CHECK(on_host_grid.cuda_error != 0 && on_host_grid.n == 0);
        if (result != UGRID_OK) return 0;
        CHECK(ugrid_validate(&on_host_grid) == UGRID_NOT_BUILT); /* without positions */
        mix(&sum, g->start, g->cell_count + 1);
        mix(&sum, g->order, n);
        for (int32_t i = 0; g->record && i < n; i++)
            mix(&sum, g->record[i].x, 3), mix(&sum, &g->record[i].link, 1);
        mix(&sum, g->head, g->cell_count);
        mix(&sum, g->next, n);
        for (int32_t c = 0; g->slot && c < g->cell_count; c++)
            for (int32_t s = 0; s < g->count[c]; s++) mix(&sum, &g->slot[s * g->cell_count + c], 1);
    } else if (object == TREE || object == WALLS || object == COPY) {
        const lbvh *t = &on_host_tree;
        if (lbvh_cuda_download(&on_host_tree,
                               object == TREE    ? &tree
                               : object == WALLS ? &walls
                                                 : &copy,
                               stream) != LBVH_OK)
            return 0;
        mix(&sum, t->node, 2 * n - 1);
        mix(&sum, t->prefix, n + 1);
    } else if (object == BODIES) {
        const nbody *b = &on_host_sim;
        if (nbody_cuda_download(&on_host_sim, &sim, stream) != NBODY_OK) return 0;
        mix(&sum, b->id, n);
        mix(&sum, b->x, n);
        mix(&sum, b->m, n);
    } else {
        nlist_cuda *l = object == LIST ? &list : object == CONTACTS ? &contacts : &loaded;
        /* it fetches counts; it may tell of a first round that did not fit */
        (void)nlist_cuda_check(l, stream);
        if (nlist_cuda_download(&on_host_list, l, stream) != NLIST_OK) return 0;
        for (int32_t i = 0; i < n; i++) {
            nlist_each e = nlist_of(&on_host_list, i);
            int32_t count = 0;
            for (; nlist_next(&e); count++)
                mix(&sum, &e.id, 1), mix(&sum, (const char *)e.history, on_host_list.desc.history);
            mix(&sum, &count, 1);
        }
    }
    return sum;
}

/* ---- steps ---- */

/* Results of four enums as one. */
enum { FINE, NO_MEMORY, CUDA_FAILED, ELSE };
static int code(ugrid_result r)
{
    return r == UGRID_OK              ? FINE
           : r == UGRID_OUT_OF_MEMORY ? NO_MEMORY
           : r == UGRID_CUDA_ERROR    ? CUDA_FAILED
                                      : ELSE;
}
static int code(lbvh_result r)
{
    return r == LBVH_OK              ? FINE
           : r == LBVH_OUT_OF_MEMORY ? NO_MEMORY
           : r == LBVH_CUDA_ERROR    ? CUDA_FAILED
                                     : ELSE;
}
static int code(nlist_result r)
{
    return r == NLIST_OK              ? FINE
           : r == NLIST_OUT_OF_MEMORY ? NO_MEMORY
           : r == NLIST_CUDA_ERROR    ? CUDA_FAILED
                                      : ELSE;
}
static int code(nbody_result r)
{
    return r == NBODY_OK              ? FINE
           : r == NBODY_OUT_OF_MEMORY ? NO_MEMORY
           : r == NBODY_CUDA_ERROR    ? CUDA_FAILED
                                      : ELSE;
}

int World::search_grid()
{
    ugrid_result r = ugrid_cuda_count_pairs(&grid, (real)0.2, one.p, stream);
    if (r == UGRID_OK) r = ugrid_cuda_count_neighbors(&grid, (real)0.2, 0, counts.p, stream);
    if (r == UGRID_OK)
        r = ugrid_cuda_neighbors(&grid, (real)0.2, 0, offsets.p, ids.p, PER * MANY, stream);
    if (r == UGRID_OK)
        r = ugrid_cuda_neighbors_at(&grid, moved.p, 0, FEW, (real)0.2, offsets.p, ids.p, PER * MANY,
                                    stream);
    return code(r);
}

int World::search_tree()
{
    lbvh_queries own = {}, given = {};
    given.kind = LBVH_POINTS;
    given.data = moved.p;
    given.n = FEW;
    given.radius = (real)0.1;
    lbvh_result r = lbvh_cuda_count_pairs(&tree, one.p, stream);
    if (r == LBVH_OK) r = lbvh_cuda_pairs(&tree, pairs.p, PER * MANY / 2, one.p, stream);
    if (r == LBVH_OK) r = lbvh_cuda_overlaps(&tree, &own, offsets.p, ids.p, PER * MANY, stream);
    if (r == LBVH_OK) r = lbvh_cuda_overlaps(&tree, &given, offsets.p, ids.p, PER * MANY, stream);
    if (r == LBVH_OK)
        r = lbvh_cuda_nearest(&tree, moved.p, 0, FEW, 4, 1, 0, ids.p, near2.p, counts.p, stream);
    return code(r);
}

int World::step_bodies()
{
    nbody_bodies b = {};
    step_pos.set(in.plane); /* every attempt begins at the same place */
    velocity.set(std::vector<real>(2 * MANY));
    b.pos = step_pos.p;
    b.vel = velocity.p;
    b.acc = step_acc.p;
    b.mass = mass.p;
    b.n = MANY;
    return code(nbody_cuda_step(&sim, &of_bodies, &b, (real)0.001, NBODY_LEAPFROG, stream));
}

/* A refusal leaves outputs unwritten. */
int World::fields()
{
    acc.forget();
    potential.forget();
    int const r = code(
        nbody_cuda_fields(&sim, &of_bodies, plane.p, 0, mass.p, MANY, acc.p, potential.p, stream));
    if (r == NO_MEMORY)
        for (real x : acc.get()) {
            unsigned char raw[sizeof(real)];
            memcpy(raw, &x, sizeof x);
            CHECK(raw[0] == 0xA5 && raw[sizeof x - 1] == 0xA5);
        }
    return r;
}

/* What becomes of the object of a step that finds no memory. */
enum Rule { AS_BEFORE, EMPTY, LIST_RULE };

#define STEPS(X)                                                                                   \
    X(GRID, EMPTY, 0, code(ugrid_cuda_build(&grid, &of_grid, pos.p, 0, SOME, stream)))             \
    X(GRID, AS_BEFORE, 0, search_grid())                                                           \
    X(TREE, EMPTY, 0, code(lbvh_cuda_build(&tree, &of_tree, pos.p, 0, SOME, stream)))              \
    X(TREE, AS_BEFORE, 0, search_tree())                                                           \
    X(WALLS, EMPTY, 0, code(lbvh_cuda_build(&walls, &of_walls, corner.p, 0, TRIANGLES, stream)))   \
    X(LIST, LIST_RULE, 0,                                                                          \
      code(nlist_cuda_build_ugrid(&list, &of_list, &grid, pos.p, 0, SOME, stream)))                \
    X(GRID, EMPTY, 0, code(ugrid_cuda_build(&grid, &of_grid, pos.p, 0, MANY, stream)))             \
    X(GRID, AS_BEFORE, 0, search_grid())                                                           \
    X(TREE, EMPTY, 0, code(lbvh_cuda_build(&tree, &of_tree, pos.p, 0, MANY, stream)))              \
    X(LIST, LIST_RULE, 0,                                                                          \
      code(nlist_cuda_build_lbvh(&list, &of_list, &tree, pos.p, 0, MANY, stream)))                 \
    X(TREE, AS_BEFORE, 0, code(lbvh_cuda_refit(&tree, moved.p, 0, stream)))                        \
    X(TREE, AS_BEFORE, 0, search_tree())                                                           \
    X(LIST, LIST_RULE, 0, code(nlist_cuda_build_brute(&list, &of_list, moved.p, 0, MANY, stream))) \
    X(LIST, LIST_RULE, 1, code(nlist_cuda_remap(&list, names.p, MANY, stream)))                    \
    X(CONTACTS, LIST_RULE, 0,                                                                      \
      code(nlist_cuda_build_mesh(&contacts, &of_contacts, &walls, &mesh, pos.p, 0, FEW, stream)))  \
    X(CONTACTS, LIST_RULE, 0,                                                                      \
      code(nlist_cuda_build_mesh(&contacts, &of_contacts, &walls, &mesh, pos.p, 0, MANY, stream))) \
    X(COPY, EMPTY, 0, code(lbvh_cuda_build(&copy, &of_tree, pos.p, 0, FEW, stream)))               \
    X(COPY, EMPTY, 0, code(lbvh_cuda_upload(&copy, &in.tree, stream)))                             \
    X(LOADED, EMPTY, 0, code(nlist_cuda_reserve(&loaded, &of_list, FEW, 1, stream)))               \
    X(LOADED, LIST_RULE, 0, code(nlist_cuda_upload(&loaded, &in.list, stream)))                    \
    X(BODIES, EMPTY, 0,                                                                            \
      code(nbody_cuda_build(&sim, &of_bodies, plane.p, 0, mass.p, SOME, stream)))                  \
    X(BODIES, EMPTY, 0, fields())                                                                  \
    X(BODIES, AS_BEFORE, 0,                                                                        \
      code(nbody_cuda_fields_at(&sim, moved.p, 0, FEW, at.p, nullptr, stream)))                    \
    X(BODIES, EMPTY, 0, step_bodies())                                                             \
    X(BODIES, EMPTY, 0, code(nbody_cuda_reserve(&sim, &of_bodies, 2 * MANY, stream)))              \
    X(BODIES, EMPTY, 0, step_bodies())                                                             \
    X(GRID, EMPTY, 0, code(ugrid_cuda_reserve(&grid, &of_grid, 2 * MANY, stream)))                 \
    X(GRID, EMPTY, 0, code(ugrid_cuda_build(&grid, &of_grid, moved.p, 0, MANY, stream)))

#define AS_STEP(object, rule, again, call) {object, rule, again, #call},
static const struct {
    Object object;
    Rule rule;
    int again;
    const char *text;
} steps[] = {STEPS(AS_STEP)};
enum { STEP_COUNT = (int)(sizeof steps / sizeof *steps) };

int World::do_step(int k)
{
    int at_step = 0;
#define AS_CALL(object, rule, again, call) if (at_step++ == k) return (call);
    STEPS(AS_CALL)
    return ELSE;
}

struct Noted { long calls, launches; uint64_t sum; };

static long launches()
{
#ifdef CUDA_EMU
    return emu_launches();
#else
    return 0;
#endif
}

static void say(const Input &in, int step, const char *what, long k)
{
    context = std::string(what) + " " + std::to_string(k) + ", program " + std::to_string(in.kind) +
              ", step " + std::to_string(step) + ": " + (step < STEP_COUNT ? steps[step].text : "");
}

/* The program without a fault. */
static long note(const Input &in, Noted *noted)
{
    Heap h = {};
    {
        World w(in, &h);
        for (int k = 0; k < STEP_COUNT; k++) {
            uint64_t before[OBJECTS];
            say(in, k, "no fault", 0);
            for (int o = 0; o < OBJECTS; o++) before[o] = w.sum_of(o);
            long const first = launches();
            CHECK(w.do_step(k) == FINE);
            MUST(cudaStreamSynchronize(stream)); /* lazy streams launch only now */
            noted[k].launches = launches() - first;
            for (int o = 0; o < OBJECTS; o++)
                if (o != steps[k].object) CHECK(w.sum_of(o) == before[o]);
            CHECK(h.live_bytes == w.bytes());
            noted[k].calls = h.calls;
            noted[k].sum = w.sum_of(steps[k].object);
        }
    }
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
    return h.calls;
}

/* ------------------------------------------------------------------------------------------------
   Tests
   ---------------------------------------------------------------------------------------------- */

/* The program with allocation number fail missing, or all from there on until the step is over. */
static void run_without_memory(const Input &in, const Noted *noted, long fail, bool forever)
{
    Heap h = {};
    h.fail_at = fail;
    h.forever = forever;
    {
        World w(in, &h);
        bool met = false;
        for (int k = 0; k < STEP_COUNT && !(met && k > 0 && noted[k - 1].calls > fail + 25); k++) {
            bool const here = !met && fail <= noted[k].calls;
            Object const object = steps[k].object;
            uint64_t before[OBJECTS];
            say(in, k, forever ? "no memory from" : "no memory at", fail);
            for (int o = 0; o < OBJECTS && here; o++) before[o] = w.sum_of(o);
            int r = w.do_step(k);
            /* where growing ahead fails, the exact size may do */
            CHECK(r == (here ? NO_MEMORY : FINE) || (here && !forever && r == FINE));
            CHECK(h.live_bytes == w.bytes());
            if (here) {
                met = true;
                h.fail_at = 0;
            }
            if (here && r == NO_MEMORY) {
                for (int o = 0; o < OBJECTS; o++) if (o != object) CHECK(w.sum_of(o) == before[o]);
                uint64_t const now = w.sum_of(object);
                const nlist_desc &d = object == CONTACTS ? w.of_contacts : w.of_list;
                if (steps[k].rule == AS_BEFORE) CHECK(now == before[object]);
                if (steps[k].rule == EMPTY) CHECK(w.n_of(object) == 0);
                if (steps[k].rule == LIST_RULE)
                    CHECK(now == before[object] ||
                          (w.n_of(object) == 0 && !d.history && !d.events));
                CHECK(cudaPeekAtLastError() == cudaSuccess);
                if (steps[k].again && w.n_of(object) == 0)
                    CHECK(w.do_step(k - steps[k].again) == FINE);
                CHECK(w.do_step(k) == FINE);
            }
            if (met) CHECK(w.sum_of(object) == noted[k].sum);
        }
        /* the exact size was tried, too */
        CHECK(met && (h.failed == 1 || (forever && h.failed == 2)));
    }
    CHECK(h.live == 0 && h.live_bytes == 0 && !h.wrong_stream);
}

static void test_memory()
{
    for (int kind = 0; kind < kinds; kind++) {
        Input const in(kind);
        Noted noted[STEP_COUNT];
        long const total = note(in, noted);
        CHECK(total > 60);
        for (long fail = 1 + kind % every; fail <= total; fail += every)
            run_without_memory(in, noted, fail, (fail / every + kind) % 2);
    }
}

/* After an error of CUDA: the same call again. What a list's history has become is not said, so
   lists begin anew, and so does what was emptied but is needed. */
static void recover(World *w, int step)
{
    Object const object = steps[step].object;
    bool const list = object == LIST || object == CONTACTS || object == LOADED;
    if (list)
        nlist_cuda_free(object == LIST ? &w->list : object == CONTACTS ? &w->contacts : &w->loaded);
    bool const anew = list || (steps[step].rule == AS_BEFORE && w->n_of(object) == 0);
    for (int k = 0; k < step && anew; k++)
        /* those need the grid of then */
        if (steps[k].object == object && !(object == LIST && k < 10)) CHECK(w->do_step(k) == FINE);
    CHECK(w->do_step(step) == FINE);
}

#ifdef CUDA_EMU
/* Launch number fail of the program is lost. The object may hold anything afterwards that can be
   freed or built again. */
static void run_without_launch(const Input &in, const Noted *noted, int step, long fail)
{
    Heap h = {};
    {
        World w(in, &h);
        say(in, step, "launch", fail);
        for (int k = 0; k < step; k++) CHECK(w.do_step(k) == FINE);
        MUST(cudaStreamSynchronize(stream));
        uint64_t before[OBJECTS];
        Object const object = steps[step].object;
        for (int o = 0; o < OBJECTS; o++) before[o] = w.sum_of(o);
        emu_fail_launch(fail);
        int const r = w.do_step(step);
        MUST(cudaStreamSynchronize(stream));
        emu_fail_launch(0);
        CHECK(r == CUDA_FAILED);
        CHECK(w.error_of(object) == (int32_t)cudaErrorLaunchOutOfResources);
        CHECK(cudaPeekAtLastError() == cudaSuccess &&
              "it was told, and is not left for the next call");
        CHECK(h.live_bytes == w.bytes());
        for (int o = 0; o < OBJECTS; o++) if (o != object) CHECK(w.sum_of(o) == before[o]);
        /* its last launches move bodies */
        if (steps[step].rule == EMPTY && !strstr(steps[step].text, "step_bodies"))
            CHECK(w.n_of(object) == 0);
        recover(&w, step);
        CHECK(w.sum_of(object) == noted[step].sum);
        if (steps[step].rule == EMPTY) CHECK(w.error_of(object) == 0);
    }
    CHECK(h.live == 0 && h.live_bytes == 0);
}
#endif

static void test_launches()
{
#ifdef CUDA_EMU
    long k = 0;
    for (int kind = 0; kind < kinds; kind++) {
        Input const in(kind);
        Noted noted[STEP_COUNT];
        (void)note(in, noted);
        for (int step = 0; step < STEP_COUNT; step++)
            for (long fail = 1; fail <= noted[step].launches; fail++)
                if (fail <= 40 && ++k % (3 * every) == 0) run_without_launch(in, noted, step, fail);
    }
#endif
}

/* An error that no call here has made. CUDA keeps it until it is asked for. */
static cudaError_t leave_an_error()
{
    void *memory = nullptr;
#ifdef CUDA_EMU
    emu_fail_alloc(1);
#endif
    cudaError_t const error = cudaMalloc(&memory, (size_t)1 << 50);
    CHECK(error != cudaSuccess && cudaPeekAtLastError() == error);
    return error;
}

/* The caller has not read an earlier error. It is not of these calls, and calls do their work as
   ever. (CUB takes an error that it finds for its own, and so the error may be forgotten before CUB
   is asked; elsewhere it stays for him to read.) */
static void test_unread_errors()
{
    for (int kind = 0; kind < kinds; kind++) {
        Input const in(kind);
        Noted noted[STEP_COUNT];
        Heap h = {};
        (void)note(in, noted);
        {
            World w(in, &h);
            for (int k = 0; k < STEP_COUNT; k++) {
                say(in, k, "unread error", 0);
                cudaError_t const error = leave_an_error();
                int const r = w.do_step(k);
                cudaError_t const left = cudaGetLastError();
                CHECK(r == FINE && w.error_of(steps[k].object) == 0);
                CHECK(left == error || left == cudaSuccess);
                if (r != FINE) recover(&w, k);
                CHECK(w.sum_of(steps[k].object) == noted[k].sum);
            }
        }
        CHECK(h.live == 0 && h.live_bytes == 0);
    }
}

/* Room for results that is exactly enough, and one less, with something behind it that must
   stay. */
template <class Call> static void check_room(const char *what, int per, int64_t all, Call call)
{
    context = std::string("room: ") + what;
    CHECK(all > 2);
    std::vector<int32_t> want;
    for (int less = 0; less < 3; less++) {
        int64_t const room = less == 2 ? 0 : all - less;
        Device<int32_t> out(std::vector<int32_t>((size_t)(per * all + 8), -77));
        CHECK(call(out.p, room) == all);
        std::vector<int32_t> const got = out.get();
        if (less == 0) want = got;
        for (int64_t k = 0; k < (int64_t)got.size(); k++)
            CHECK(got[(size_t)k] == (k < per * room ? want[(size_t)k] : -77));
        for (int64_t k = 0; k < per * room; k++) CHECK(got[(size_t)k] >= 0);
    }
}

static void test_room()
{
    for (int kind = 0; kind < std::min(kinds, 2) + 3; kind++) {
        Input const in(kind);
        Heap h = {};
        World w(in, &h);
        real const radius = (real)0.2;
        say(in, STEP_COUNT, "room", 0);
        CHECK(w.do_step(6) == FINE && w.do_step(8) == FINE && w.do_step(9) == FINE);
        for (int flags : {0, (int)UGRID_HALF, (int)UGRID_PLACES}) {
            auto const rows = [&](int32_t *out, int64_t room) {
                CHECK(ugrid_cuda_neighbors(&w.grid, radius, flags, w.offsets.p, out, room,
                                           stream) == UGRID_OK);
                return w.offsets.get()[MANY];
            };
            check_room("ugrid_cuda_neighbors", 1, rows(w.ids.p, 0), rows);
        }
        auto const rows_at = [&](int32_t *out, int64_t room) {
            CHECK(ugrid_cuda_neighbors_at(&w.grid, w.moved.p, 0, MANY, radius, w.offsets.p, out,
                                          room, stream) == UGRID_OK);
            return w.offsets.get()[MANY];
        };
        check_room("ugrid_cuda_neighbors_at", 1, rows_at(w.ids.p, 0), rows_at);
        auto const pairs = [&](int32_t *out, int64_t room) {
            CHECK(lbvh_cuda_pairs(&w.tree, out, room, w.one.p, stream) == LBVH_OK);
            return w.one.get()[0];
        };
        check_room("lbvh_cuda_pairs", 2, pairs(w.ids.p, 0), pairs);
        for (int given = 0; given < 2; given++) {
            auto const overlaps = [&](int32_t *out, int64_t room) {
                lbvh_queries q = {};
                q.kind = LBVH_POINTS;
                q.radius = (real)0.2;
                q.data = given ? w.moved.p : nullptr;
                q.n = given ? MANY : 0;
                CHECK(lbvh_cuda_overlaps(&w.tree, &q, w.offsets.p, out, room, stream) == LBVH_OK);
                return w.offsets.get()[MANY];
            };
            check_room("lbvh_cuda_overlaps", 1, overlaps(w.ids.p, 0), overlaps);
        }
        /* The list's own room. */
        context = "room: lists";
        nlist_desc d = w.of_list;
        d.history = d.events = 0;
        d.grow = 0;
        CHECK(nlist_cuda_check(&w.list, stream) == NLIST_OK);
        nlist_cuda_free(&w.list);
        d.capacity = PER * MANY;
        CHECK(code(nlist_cuda_build_brute(&w.list, &d, w.pos.p, 0, MANY, stream)) == FINE &&
              nlist_cuda_check(&w.list, stream) == NLIST_OK);
        int64_t const entries = w.list.device.list.needed_entries, total = w.list.device.list.total;
        int32_t const width = w.list.device.list.needed_width;
        for (int less = 0; less < 2; less++) {
            nlist_result const want = !less                      ? NLIST_OK
                                      : d.layout == NLIST_STATIC ? NLIST_ROW_FULL
                                                                 : NLIST_LIST_FULL;
            nlist_cuda_free(&w.list);
            if (d.layout == NLIST_STATIC) d.width = width - less;
            else d.capacity = entries - less;
            CHECK(code(nlist_cuda_build_brute(&w.list, &d, w.pos.p, 0, MANY, stream)) == FINE);
            CHECK(nlist_cuda_check(&w.list, stream) == want);
            CHECK(w.list.device.list.total == total);
            if (d.layout == NLIST_STATIC) CHECK(w.list.device.list.needed_width == width);
            else CHECK(w.list.device.list.needed_entries == entries);
        }
        /* Cells of nbody_cuda, slots of ugrid_cuda. */
        context = "room: cells";
        nbody_desc b = w.of_bodies;
        nbody_frame frame = {};
        if (b.method != NBODY_DIRECT) {
            CHECK(code(nbody_cuda_build(&w.sim, &b, w.plane.p, 0, w.mass.p, MANY, stream)) == FINE);
            CHECK(nbody_cuda_check(&w.sim, &frame, stream) == NBODY_OK && frame.cells > 9 &&
                  frame.cells == frame.cells_needed);
            int32_t const cells = frame.cells;
            for (int less = 0; less < 2; less++) {
                /* a cell is divided while there is room for 4 more */
                b.max_cells = cells - 8 * less;
                CHECK(code(nbody_cuda_build(&w.sim, &b, w.plane.p, 0, w.mass.p, MANY, stream)) ==
                      FINE);
                CHECK(nbody_cuda_check(&w.sim, &frame, stream) ==
                      (less ? NBODY_CELLS_FULL : NBODY_OK));
                CHECK(frame.cells_needed > b.max_cells - 4 && frame.cells <= b.max_cells + 4);
            }
        }
        ugrid_desc g = w.of_grid;
        g.method = UGRID_FIXED;
        g.cell = (real)0.5;
        g.slots = 1;
        CHECK(code(ugrid_cuda_build(&w.grid, &g, w.pos.p, 0, MANY, stream)) == FINE &&
              ugrid_cuda_check(&w.grid, stream) == UGRID_CELL_FULL);
        int32_t const slots = w.grid.device.grid.needed_slots;
        for (int less = 0; less < 2; less++) {
            g.slots = slots - less;
            CHECK(code(ugrid_cuda_build(&w.grid, &g, w.pos.p, 0, MANY, stream)) == FINE);
            CHECK(ugrid_cuda_check(&w.grid, stream) == (less ? UGRID_CELL_FULL : UGRID_OK));
            if (less) CHECK(w.grid.device.grid.needed_slots == slots);
        }
    }
}

/* ------------------------------------------------------------------------------------------------
   Main
   ---------------------------------------------------------------------------------------------- */

static const Test tests[] = {
    {"memory", test_memory},
    {"launches", test_launches},
    {"unread errors", test_unread_errors},
    {"room", test_room},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    bool const slow = small || emu_options()->blocks > 1;
    every = slow ? 61 : 7;
    kinds = slow ? 1 : 4;
#else
    every = small ? 7 : 1;
    kinds = small ? 2 : 12;
#endif
    read_options(argc, argv, {{"--every", &every, 1}, {"--kinds", &kinds, 1}});
    return run_tests(tests);
}
