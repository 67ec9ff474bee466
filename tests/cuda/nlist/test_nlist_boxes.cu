/* test_nlist_boxes.cu - tests of the CUDA part of nlist.h: boxes of any shape, all images, many
   systems, the nearest.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/nlist/test_nlist_boxes.cu \
           -o test_nlist_boxes && ./test_nlist_boxes

   Every array equals that of the serial build in every bit, and the serial list is compared with
   brute force (nlist_boxes_oracle.h).
   Options: --only NAME; --share K: every Kth case (default 1). */

#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#define NLIST_WITH_BOXES
#include "nlist.h"
#define TESTED nlist
#include "../testing.h"
#include "../../common/nlist_boxes_oracle.h"

static const nlist_layout layouts[] = {NLIST_COMPACT, NLIST_STATIC, NLIST_DYNAMIC, NLIST_HYBRID};

static nlist_desc desc_of(const boxes_system &s, int turn)
{
    nlist_desc d = {};
    d.dim = s.dim;
    d.radius = s.radius;
    d.shifts = d.distances = d.offsets = d.deterministic = d.grow = 1;
    d.layout = layouts[turn % 4];
    d.width = d.layout == NLIST_STATIC ? 64 : d.layout == NLIST_HYBRID ? 4 : 0;
    d.half = turn / 4 % 2;
    return d;
}

/* The same bits in all arrays of two lists. */
static void check_same(const nlist &a, const nlist &b)
{
    const nlist_rows &r = a.rows[a.current], &q = b.rows[b.current];
    size_t const particles = (size_t)a.n, n = (size_t)a.row_count, slots = n * (size_t)r.width,
                 entries = (size_t)r.entries, all = slots + entries;
    CHECK(a.n == b.n && a.row_count == b.row_count && r.n == a.row_count && q.n == r.n);
    CHECK(a.total == b.total && r.width == q.width && r.entries == q.entries &&
          a.rows_cut == b.rows_cut);
    CHECK(!a.boxed == !b.boxed);
    if (a.n == 0 || a.n != b.n || r.n != q.n || r.width != q.width || r.entries != q.entries)
        return;
    CHECK(n == 0 || same_array(r.count, q.count, n));
    CHECK(n == 0 || same_array(r.slot, q.slot, slots));
    CHECK(same_array(r.start, q.start, n + 1));
    CHECK(entries == 0 || same_array(r.partner, q.partner, entries));
    CHECK(entries == 0 || same_array(r.own, q.own, entries));
    CHECK(entries == 0 || same_array(r.link, q.link, entries));
    CHECK(n == 0 || same_array(r.head, q.head, n));
    CHECK(n == 0 || same_array(r.within, q.within, n));
    CHECK(same_array(r.reference, q.reference, particles * (size_t)a.desc.dim));
    CHECK(same_array(r.uid, q.uid, particles));
    for (size_t e = 0; e < all; e++) { /* padding has no shift */
        if (e < slots && r.slot[e] < 0) continue;
        CHECK(!r.shift || same_bits(r.shift + 3 * e, q.shift + 3 * e, 3));
        CHECK(!r.distance || same_bits(r.distance + e, q.distance + e, 1));
        CHECK(!r.offset || same_bits(r.offset + 3 * e, q.offset + 3 * e, 3));
        size_t const bytes = (size_t)a.desc.history;
        CHECK(!r.history || same_bits(r.history + bytes * e, q.history + bytes * e, bytes));
    }
    for (int kind = 0; kind < NLIST_EVENT_KINDS && a.desc.events; kind++) {
        CHECK(a.event_count[kind] == b.event_count[kind]);
        for (int64_t k = 0; k < a.event_count[kind] && k < b.event_count[kind]; k++) {
            const nlist_event &x = a.event[kind][k], &y = b.event[kind][k];
            CHECK(x.i == y.i && x.j == y.j && x.entry == y.entry);
        }
    }
}

static std::vector<real> positions(const boxes_system &s)
{
    return std::vector<real>(s.pos, s.pos + s.dim * s.n);
}

/* Builds on both sides, and compares. */
static void check_both(nlist_cuda *gpu, nlist *list, const nlist_desc &d, const boxes_system &s)
{
    Device<real> pos(positions(s));
    nlist back = {};
    CHECK_RESULT(nlist_build_box(list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
    CHECK_RESULT(nlist_cuda_build_box(gpu, &d, &s.box, pos.p, 0, s.n, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&back, gpu, stream), NLIST_OK);
    check_same(*list, back);
    CHECK_RESULT(nlist_validate(&back), NLIST_OK);
    nlist_free(&back);
}

static void test_shapes()
{
    wl_random dice = wl_seed(3);
    nlist_cuda gpu = {};
    nlist list = {};
    size_t counter = 0;
    for (int kind = 0; kind < BOXES_KINDS; kind++)
        for (int dim = 2; dim <= 3; dim++)
            for (int periodic = 0; periodic < 1 << dim; periodic++)
                for (int turn = 0; turn < 16; turn++) {
                    if (!chosen(counter++, share, 200)) continue;
                    boxes_system s;
                    /* a tiny box has hundreds of images within reach, and rows that are as long */
                    uint32_t const many = kind == BOXES_TINY || kind == BOXES_FLAT ? 30 : 150;
                    boxes_make(&s, kind, dim, periodic,
                               1 + (int32_t)wl_below(&dice, turn % 4 == 3 ? many : 12), &dice);
                    nlist_desc d = desc_of(s, turn);
                    /* such rows are longer than the 1024 entries that NLIST_STATIC can hold */
                    if (many == 30 && d.layout == NLIST_STATIC) d.layout = NLIST_HYBRID;
                    d.sorted = turn / 8;
                    d.rows = turn % 3 ? 0 : (int32_t)wl_below(&dice, (uint32_t)s.n + 1) - 1;
                    context = "kind " + std::to_string(kind) + ", dim " + std::to_string(dim) +
                              ", periodic " + std::to_string(periodic) + ", turn " +
                              std::to_string(turn) + ", n " + std::to_string(s.n);
                    /* a list on the GPU keeps the width that it has grown to */
                    if (d.layout == NLIST_STATIC) nlist_cuda_free(&gpu);
                    check_both(&gpu, &list, d, s);
                    if (d.layout == NLIST_STATIC) nlist_cuda_free(&gpu);
                    boxes_truth want = boxes_brute(&s, s.radius), got = boxes_of_list(&list);
                    if (d.half) boxes_halve(&want);
                    boxes_keep_rows(&want, list.row_count);
                    boxes_sort(&got);
                    const char *wrong = boxes_differ(&got, &want, 1);
                    if (wrong) failed(__FILE__, __LINE__, wrong);
                    free(want.entry);
                    free(got.entry);
                    boxes_forget(&s);
                }
    nlist_free(&list);
    nlist_cuda_free(&gpu);
}

/* Rows of many cells, with radii, masks and exclusions. */
static void test_criteria()
{
    wl_random dice = wl_seed(4);
    for (int turn = 0; turn < 4; turn++) {
        boxes_system s;
        boxes_make(&s, turn, 3, 7, 300, &dice);
        s.radius = (real)0.3;
        nlist_desc d = desc_of(s, 4 * turn), on_host;
        std::vector<real> radii((size_t)s.n);
        std::vector<uint32_t> masks((size_t)s.n);
        std::vector<int64_t> start((size_t)s.n + 1);
        std::vector<int32_t> exclude((size_t)s.n);
        for (int32_t i = 0; i < s.n; i++) {
            radii[(size_t)i] = (real)0.07 * (real)wl_below(&dice, 3);
            masks[(size_t)i] = wl_below(&dice, 8);
            start[(size_t)i + 1] = i + 1;
            exclude[(size_t)i] = (int32_t)wl_below(&dice, (uint32_t)s.n);
        }
        Device<real> d_radii(radii), pos(positions(s));
        Device<uint32_t> d_masks(masks);
        Device<int64_t> d_start(start);
        Device<int32_t> d_exclude(exclude);
        on_host = d;
        on_host.radii = radii.data(), on_host.masks = masks.data(),
        on_host.exclude_start = start.data(), on_host.exclude = exclude.data();
        d.radii = d_radii.p, d.masks = d_masks.p, d.exclude_start = d_start.p,
        d.exclude = d_exclude.p;
        nlist list = {}, back = {};
        nlist_cuda gpu = {};
        CHECK_RESULT(nlist_build_box(&list, &on_host, &s.box, s.pos, 0, s.n), NLIST_OK);
        CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &s.box, pos.p, 0, s.n, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_download(&back, &gpu, stream), NLIST_OK);
        CHECK(list.total > 100);
        check_same(list, back);
        nlist_free(&list);
        nlist_free(&back);
        nlist_cuda_free(&gpu);
        boxes_forget(&s);
    }
}

/* Many systems: the same arrays, and the same number of kernels as for one. */
static void test_systems()
{
    wl_random dice = wl_seed(5);
    std::vector<nlist_box> boxes;
    std::vector<int32_t> starts = {0};
    std::vector<real> all;
    for (int k = 0; k < 50; k++) {
        boxes_system s;
        boxes_make(&s, k % BOXES_KINDS, 3, (int)wl_below(&dice, 8),
                   k == 20 ? 500 : 1 + (int32_t)wl_below(&dice, 40), &dice);
        boxes.push_back(s.box);
        all.insert(all.end(), s.pos, s.pos + 3 * s.n);
        starts.push_back(starts.back() + s.n);
        boxes_forget(&s);
    }
    Device<nlist_box> d_boxes(boxes);
    Device<int32_t> d_starts(starts);
    Device<real> pos(all);
    nlist list = {}, back = {};
    nlist_cuda gpu = {};
    nlist_desc d = {};
    d.radius = (real)0.6;
    d.shifts = d.offsets = d.grow = 1;
    context = "systems";
    CHECK_RESULT(nlist_build_boxes(&list, &d, boxes.data(), starts.data(), 50, all.data(), 0),
                 NLIST_OK);
    CHECK_RESULT(nlist_cuda_build_boxes(&gpu, &d, d_boxes.p, d_starts.p, 50, pos.p, 0,
                                        starts.back(), stream),
                 NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&back, &gpu, stream), NLIST_OK);
    check_same(list, back);
    d.grow = 0;
    d.capacity = 2 * list.total;
    /* one is refused: its rows are empty, the others are there */
    boxes[1].periodic[0] = boxes[1].periodic[1] = 1;
    for (int k = 0; k < 3; k++) boxes[1].cell[0][k] = boxes[1].cell[1][k] = 1;
    d_boxes.set(boxes);
    CHECK_RESULT(nlist_cuda_build_boxes(&gpu, &d, d_boxes.p, d_starts.p, 50, pos.p, 0,
                                        starts.back(), stream),
                 NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_BAD_BOX);
    CHECK(gpu.device.list.bad_id == 1);
    CHECK_RESULT(nlist_cuda_download(&back, &gpu, stream), NLIST_OK);
    for (int32_t i = 0; i < list.n; i++)
        CHECK(back.rows[0].count[i] ==
              (i >= starts[1] && i < starts[2] ? 0 : list.rows[list.current].count[i]));
    for (int k = 0; k < 3; k++)
        boxes[1].cell[0][k] = boxes[1].cell[1][k] = k == 1 ? (real)1e-10 : 0;
    boxes[1].periodic[1] = boxes[1].periodic[2] = 0;
    d_boxes.set(boxes);
    CHECK_RESULT(nlist_cuda_build_boxes(&gpu, &d, d_boxes.p, d_starts.p, 50, pos.p, 0,
                                        starts.back(), stream),
                 NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_TOO_MANY_IMAGES);
    CHECK(gpu.device.list.bad_id == 1);
    starts[9] = starts[8] - 1;
    d_starts.set(starts);
    CHECK_RESULT(nlist_cuda_build_boxes(&gpu, &d, d_boxes.p, d_starts.p, 50, pos.p, 0,
                                        starts.back(), stream),
                 NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_BAD_STARTS);
    nlist_free(&list);
    nlist_free(&back);
    nlist_cuda_free(&gpu);
}

static void test_nearest()
{
    wl_random dice = wl_seed(6);
    nlist_cuda gpu = {};
    nlist list = {};
    for (int turn = 0; turn < 24; turn++) {
        boxes_system s;
        boxes_make(&s, turn % 2 ? BOXES_LATTICE : turn / 2 % BOXES_KINDS, 3, 7, 30, &dice);
        nlist_desc d = desc_of(s, turn % 4);
        d.nearest = 1 + (int32_t)wl_below(&dice, 25);
        d.rows = turn % 3 ? 0 : 1 + (int32_t)wl_below(&dice, (uint32_t)s.n);
        context = "nearest, turn " + std::to_string(turn);
        check_both(&gpu, &list, d, s);
        boxes_forget(&s);
    }
    nlist_free(&list);
    nlist_cuda_free(&gpu);
}

static void make_move(boxes_system *s, wl_random *dice)
{
    for (int32_t k = 0; k < 3 * s->n; k++) s->pos[k] += (real)boxes_between(dice, -0.05, 0.05);
}

/* Steps with history and events; then new ids, and steps again. */
static void test_history()
{
    wl_random dice = wl_seed(7);
    for (int turn = 0; turn < 8; turn++) {
        boxes_system s;
        boxes_make(&s, turn % 2 ? BOXES_TINY : BOXES_TRICLINIC, 3, 7, 16, &dice);
        s.radius = (real)(turn % 2 ? 0.3 : 1);
        nlist_desc d = desc_of(s, turn);
        d.half = turn / 4;
        d.history = 4;
        d.events = 1;
        d.skin = (real)0.1;
        d.grow = 0;
        d.width = 128;
        d.capacity = 256 * 16;
        d.rows = turn % 3 ? 0 : 1 + (int32_t)wl_below(&dice, (uint32_t)s.n);
        nlist list = {};
        nlist_cuda gpu = {};
        Device<int32_t> new_id((size_t)s.n);
        for (int step = 0; step < 5; step++) {
            context = "history, turn " + std::to_string(turn) + ", step " + std::to_string(step);
            check_both(&gpu, &list, d, s);
            if (step == 2) {
                std::vector<int32_t> ids((size_t)s.n);
                for (int32_t i = 0; i < s.n; i++) ids[(size_t)i] = (i * 5 + 1) % s.n;
                if (s.n % 5 == 0)
                    for (int32_t i = 0; i < s.n; i++) ids[(size_t)i] = s.n - 1 - i;
                new_id.set(ids);
                if (d.rows) d.rows = 1 + (int32_t)wl_below(&dice, (uint32_t)s.n);
                int32_t const rows = d.rows ? d.rows : s.n;
                CHECK_RESULT(nlist_remap_rows(&list, ids.data(), s.n, rows), NLIST_OK);
                CHECK_RESULT(nlist_cuda_remap_rows(&gpu, new_id.p, s.n, rows, stream), NLIST_OK);
                CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
                nlist back = {};
                CHECK_RESULT(nlist_cuda_download(&back, &gpu, stream), NLIST_OK);
                list.desc.events = back.desc.events = 0; /* of the last build */
                check_same(list, back);
                list.desc.events = 1;
                nlist_free(&back);
                std::vector<real> had = positions(s);
                for (int32_t i = 0; i < s.n; i++)
                    for (int a = 0; a < 3; a++)
                        s.pos[3 * ids[(size_t)i] + a] = had[(size_t)(3 * i + a)];
            }
            make_move(&s, &dice);
        }
        CHECK(list.event_count[NLIST_PERSISTED] > 0);
        nlist_free(&list);
        nlist_cuda_free(&gpu);
        boxes_forget(&s);
    }
}

/* History survives: what is written on the host, uploaded, is carried by the next build on the
   device. */
static void test_upload()
{
    wl_random dice = wl_seed(8);
    boxes_system s;
    boxes_make(&s, BOXES_TINY, 3, 7, 12, &dice);
    s.radius = (real)0.5;
    nlist_desc d = desc_of(s, 0);
    d.history = 4;
    nlist list = {}, back = {};
    nlist_cuda gpu = {};
    Device<real> pos(positions(s));
    context = "upload";
    CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
    for (int32_t i = 0; i < s.n; i++) {
        nlist_each e = nlist_of(&list, i);
        while (nlist_next(&e)) {
            int32_t const mark =
                1000 * i + 100 * e.id + 9 * e.shift[0] + 3 * e.shift[1] + e.shift[2];
            memcpy(e.history, &mark, 4);
        }
    }
    CHECK_RESULT(nlist_cuda_upload(&gpu, &list, stream), NLIST_OK);
    d.capacity = 4 * list.total;
    CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &s.box, pos.p, 0, s.n, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_download(&back, &gpu, stream), NLIST_OK);
    check_same(list, back);
    nlist_free(&list);
    nlist_free(&back);
    nlist_cuda_free(&gpu);
    boxes_forget(&s);
}

static void test_refusals()
{
    real const host[6] = {0, 0, 0, (real)0.5, not_a_number, 0};
    Device<real> pos(std::vector<real>(host, host + 6));
    nlist_cuda gpu = {};
    nlist_desc d = {};
    nlist_box box = {};
    for (int a = 0; a < 3; a++) box.cell[a][a] = 1, box.periodic[a] = 1;
    d.radius = (real)0.6;
    context = "refusals";
    CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &box, pos.p, 0, 2, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_NOT_FINITE);
    CHECK(gpu.device.list.bad_id == 1);
    box.cell[2][2] = 0;
    CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &box, pos.p, 0, 2, stream), NLIST_BAD_BOX);
    CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, nullptr, pos.p, 0, 2, stream), NLIST_BAD_ARGUMENT);
    d.shifts = 1;
    CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, pos.p, 0, 1, stream), NLIST_BAD_OPTION);
    d.nearest = 2;
    d.half = 1;
    box.cell[2][2] = 1;
    CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &box, pos.p, 0, 1, stream), NLIST_BAD_OPTION);
    d = {};
    d.radius = (real)0.6;
    CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &box, nullptr, 0, 0, stream), NLIST_OK);
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    nlist_cuda_free(&gpu);
}

/* After the first call nothing is allocated. */
static void test_memory()
{
    wl_random dice = wl_seed(9);
    Heap heap = {};
    nlist_cuda gpu = {};
    boxes_system s;
    boxes_make(&s, BOXES_TRICLINIC, 3, 7, 200, &dice);
    nlist_desc d = desc_of(s, 0);
    Device<real> pos(positions(s));
    d.cuda_allocator = allocator_of(&heap);
    d.capacity = 200 * 100;
    d.grow = 0;
    d.sorted = 1;
    context = "memory";
    for (int turn = 0; turn < 3; turn++) {
        long const calls = heap.calls;
        CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &s.box, pos.p, 0, s.n, stream), NLIST_OK);
        CHECK(turn == 0 || heap.calls == calls);
    }
    CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
    nlist_cuda_free(&gpu);
    CHECK(heap.live == 0 && !heap.wrong_stream);
    for (long k = 1; k < 14; k++) {
        Heap failing = {};
        failing.fail_at = k;
        d.cuda_allocator = allocator_of(&failing);
        CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &s.box, pos.p, 0, s.n, stream),
                     NLIST_OUT_OF_MEMORY);
        CHECK_RESULT(nlist_cuda_build_box(&gpu, &d, &s.box, pos.p, 0, s.n, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
        nlist_cuda_free(&gpu);
        CHECK(failing.live == 0 && failing.failed == 1);
    }
    boxes_forget(&s);
}

/* A build with room enough, captured once and replayed while the particles and the box change. */
static void test_graph()
{
    wl_random dice = wl_seed(10);
    nlist_cuda gpu = {};
    nlist list = {}, back = {};
    boxes_system s;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    boxes_make(&s, BOXES_TRICLINIC, 3, 7, 120, &dice);
    nlist_desc d = desc_of(s, 0);
    d.capacity = 120 * 200;
    d.grow = 0;
    Device<real> pos(positions(s));
    Device<nlist_box> box(std::vector<nlist_box>(1, s.box));
    Device<int32_t> starts(std::vector<int32_t>{0, s.n});
    auto const build = [&] {
        return nlist_cuda_build_boxes(&gpu, &d, box.p, starts.p, 1, pos.p, 0, s.n, stream);
    };
    CHECK_RESULT(build(), NLIST_OK); /* takes the memory */
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK_RESULT(build(), NLIST_OK);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int turn = 0; turn < 4; turn++) {
        context = "graph, replay " + std::to_string(turn);
        for (int k = 0; k < 3 * s.n; k++) s.pos[k] *= (real)1.01;
        for (auto &axis : s.box.cell)
            for (real &x : axis) x *= (real)1.02;
        pos.set(positions(s));
        box.set(std::vector<nlist_box>(1, s.box));
        MUST(cudaDeviceSynchronize());
        MUST(cudaGraphLaunch(exec, stream));
        CHECK_RESULT(nlist_build_box(&list, &d, &s.box, s.pos, 0, s.n), NLIST_OK);
        CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
        CHECK_RESULT(nlist_cuda_download(&back, &gpu, stream), NLIST_OK);
        CHECK(list.total > s.n);
        check_same(list, back);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    nlist_free(&back);
    nlist_free(&list);
    nlist_cuda_free(&gpu);
    boxes_forget(&s);
}

static const Test tests[] = {
    {"shapes", test_shapes},     {"criteria", test_criteria}, {"systems", test_systems},
    {"nearest", test_nearest},   {"history", test_history},   {"upload", test_upload},
    {"refusals", test_refusals}, {"memory", test_memory},     {"graph", test_graph},
};

int main(int argc, char **argv)
{
#ifdef CUDA_EMU
    share = getenv("TEST_SMALL") ? 25 : 4;
#else
    share = 1;
#endif
    read_options(argc, argv, {{"--share", &share, 1}});
    return run_tests(tests);
}
