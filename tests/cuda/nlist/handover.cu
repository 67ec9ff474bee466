/* handover.cu - a part of test_nlist.cu: sequences of builds, refused builds, remaps with
   insertions and deletions, for up to four particles (nlist_handover.h), with lists on the GPU.
   SPDX-License-Identifier: MIT OR Unlicense

   Lists take their memory from an arena on the device. To go back to a state, the arena is copied
   back. In the cases with slots and without events history stays in place. */

#include "../../common/nlist_handover.h"

namespace {

struct HandoverMark {
    uint32_t step;
    int32_t words;
    __device__ int operator()(int32_t i, int32_t j, void *history, int64_t) const
    {
        handover_put(history, words, handover_mark(step, i, j));
        return 1;
    }
};

/* A list, its memory, and the states that it can go back to. */
struct Handed {
    enum { ROOM = 1 << 17 };
    struct State {
        nlist_cuda gpu;
        size_t used;
    };
    Device<unsigned char> arena{ROOM}, kept{HANDOVER_DEPTH * ROOM};
    nlist_cuda gpu = {};
    size_t used = 0;
    State states[HANDOVER_DEPTH];
    nlist host = {}, none = {};
    bool goes_back = true; /* else memory is not from the arena */

    ~Handed()
    {
        nlist_free(&host);
        if (!goes_back) nlist_cuda_free(&gpu);
    }
    static Handed &of(void *state) { return *static_cast<Handed *>(state); }
    static void *take(size_t bytes, CUstream_st *, void *user)
    {
        Handed &h = of(user);
        size_t const room = (bytes + 255) / 256 * 256;
        if (room > ROOM - h.used) return nullptr;
        h.used += room;
        return h.arena.p + (h.used - room);
    }
    static void leave(void *, size_t, CUstream_st *, void *) {} /* with an earlier state */
};

nlist_result handed_build(void *state, const nlist_desc *desc, const int32_t *pair, int64_t m,
                          int32_t n)
{
    Handed &h = Handed::of(state);
    Device<int32_t> d_pair(std::vector<int32_t>(pair, pair + 2 * m));
    nlist_desc d = *desc;
    if (h.goes_back) d.cuda_allocator = {Handed::take, Handed::leave, state};
    nlist_result const result = nlist_cuda_build_pairs(&h.gpu, &d, d_pair.p, m, n, stream);
    return result == NLIST_OK ? nlist_cuda_check(&h.gpu, stream) : result;
}

nlist_result handed_remap(void *state, const int32_t *new_id, int32_t n, int32_t rows)
{
    Handed &h = Handed::of(state);
    Device<int32_t> d_new_id(std::vector<int32_t>(new_id, new_id + h.gpu.device.list.n));
    nlist_result const result =
        rows < 0 ? nlist_cuda_remap(&h.gpu, d_new_id.p, n, stream)
                 : nlist_cuda_remap_rows(&h.gpu, d_new_id.p, n, rows, stream);
    return result == NLIST_OK ? nlist_cuda_check(&h.gpu, stream) : result;
}

const nlist *handed_view(void *state)
{
    Handed &h = Handed::of(state);
    return nlist_cuda_download(&h.host, &h.gpu, stream) == NLIST_OK ? &h.host : &h.none;
}

void handed_stamp(void *state, uint32_t step)
{
    Handed &h = Handed::of(state);
    int32_t const words = h.gpu.device.list.desc.history / (int32_t)sizeof(uint32_t);
    CHECK_RESULT(nlist_cuda_each(&h.gpu, HandoverMark{step, words}, stream), NLIST_OK);
}

void handed_copy(void *to, const void *from, size_t bytes)
{
    MUST(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
}

void handed_save(void *state, int depth)
{
    Handed &h = Handed::of(state);
    h.states[depth] = {h.gpu, h.used};
    if (h.used > 0) handed_copy(h.kept.p + (size_t)depth * Handed::ROOM, h.arena.p, h.used);
}

void handed_restore(void *state, int depth)
{
    Handed &h = Handed::of(state);
    h.gpu = h.states[depth].gpu;
    h.used = h.states[depth].used;
    if (h.used > 0) handed_copy(h.arena.p, h.kept.p + (size_t)depth * Handed::ROOM, h.used);
}

/* A capacity of 1 and 2: what does not fit is refused, and built again. */
const handover_case handed_cases[] = {
    {{NLIST_STATIC, NLIST_STATIC}, 3, 0, 0, 0, 0, 1},
    {{NLIST_STATIC, NLIST_STATIC}, 2, 0, 1, 0, 1, 4},
    {{NLIST_HYBRID, NLIST_HYBRID}, 4, 0, 0, 0, 0, 4},
    {{NLIST_HYBRID, NLIST_HYBRID}, 2, 2, 0, 1, 0, 4},
    {{NLIST_HYBRID, NLIST_HYBRID}, 2, 1, 1, 1, 0, 1},
    {{NLIST_HYBRID, NLIST_HYBRID}, 1, 0, 0, 0, 1, 3},
    {{NLIST_DYNAMIC, NLIST_DYNAMIC}, 0, 1, 0, 0, 0, 4},
    {{NLIST_DYNAMIC, NLIST_DYNAMIC}, 0, 0, 1, 1, 1, 2},
    {{NLIST_COMPACT, NLIST_COMPACT}, 0, 0, 0, 1, 0, 4},
    {{NLIST_COMPACT, NLIST_COMPACT}, 0, 0, 1, 0, 1, 1},
    {{NLIST_HYBRID, NLIST_COMPACT}, 2, 0, 1, 0, 0, 4},
    {{NLIST_STATIC, NLIST_DYNAMIC}, 3, 0, 0, 0, 0, 1},
};

/* `rare` as in handover.rare. */
void handed_run(const handover_case &c, int32_t n, int depth, int64_t rare, int64_t turn)
{
    Handed handed;
    handover h = {};
    h.driver = {&handed,     0,           handed_build, handed_remap,
                handed_view, handed_stamp, handed_save, handed_restore};
    h.c = c;
    h.depth = depth;
    h.rare = rare;
    h.every = 8 * rare;
    h.turn = turn;
    handover_run(&h, n);
    context = std::string("handover: ") + h.said;
    checks += (int)h.steps;
    CHECK(h.failures == 0);
}

} /* namespace */

static void test_handover()
{
    bool const less = share > 4;
    for (size_t k = 0; k < sizeof handed_cases / sizeof *handed_cases; k++) {
        handed_run(handed_cases[k], 2, 2, less ? 5 : 1, (int64_t)k);
        handed_run(handed_cases[k], 3, 2, less ? 23 : 3, (int64_t)k);
        handed_run(handed_cases[k], 4, 1, less ? 37 : 3, (int64_t)k);
    }
}

namespace {

/* Pairs of particle `hub` with all others but every `without`th (0: all). */
std::vector<int32_t> star_of(int32_t n, int32_t hub, int32_t without)
{
    std::vector<int32_t> pair;
    for (int32_t j = 0; j < n; j++)
        if (j != hub && (without == 0 || j % without != 0)) pair.insert(pair.end(), {hub, j});
    return pair;
}

/* Each entry that was there before has the mark of its particles' ids then, others none. was: old
   ids. */
void check_star(Handed *h, const std::vector<int32_t> &was, int32_t without, size_t entries)
{
    const nlist *list = handed_view(h);
    size_t met = 0;
    bool right = true;
    for (int32_t i = 0; i < list->n; i++) {
        nlist_each e = nlist_of(list, i);
        for (; nlist_next(&e); met++) {
            int32_t const a = was[(size_t)i], b = was[(size_t)e.id];
            bool const had = without == 0 || (a + b) % without != 0;
            right = right && handover_holds(e.history, 4, had ? handover_mark(0, a, b) : 0);
        }
    }
    CHECK(right && "bytes in a long row");
    CHECK(met == entries);
}

} /* namespace */

/* A row so long that its entries are found by the table, in another order than before. */
static void test_long_rows()
{
    static const nlist_layout layouts[] = {NLIST_DYNAMIC, NLIST_COMPACT, NLIST_HYBRID};
    int32_t const n = 400;
    for (int k = 0; k < 6; k++) {
        Handed h;
        h.goes_back = false;
        nlist_desc d = {};
        d.radius = 1;
        d.layout = layouts[k % 3];
        d.width = 3;
        d.history = 16;
        d.half = k / 3;
        d.grow = 1;
        size_t const entries = d.half ? 1 : 2;
        context = "long row, case " + std::to_string(k);
        std::vector<int32_t> pair = star_of(n, 0, 3), new_id, was((size_t)n);
        CHECK_RESULT(handed_build(&h, &d, pair.data(), (int64_t)pair.size() / 2, n), NLIST_OK);
        handed_stamp(&h, 0);
        for (int32_t i = 0; i < n; i++) new_id.push_back((i * 7 + 3) % n);
        for (int32_t i = 0; i < n; i++) was[(size_t)new_id[(size_t)i]] = i;
        CHECK_RESULT(handed_remap(&h, new_id.data(), n, -1), NLIST_OK);
        check_star(&h, was, 3, entries * pair.size() / 2);
        pair = star_of(n, new_id[0], 0);
        CHECK_RESULT(handed_build(&h, &d, pair.data(), (int64_t)pair.size() / 2, n), NLIST_OK);
        check_star(&h, was, 3, entries * pair.size() / 2);
        CHECK(h.gpu.scratch[9].memory && "there is a table"); /* NLIST_I_TABLE, if it is linked */
    }
}
