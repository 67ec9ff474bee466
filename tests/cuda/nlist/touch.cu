/* touch.cu - a part of test_nlist.cu: lists with a skin whose entries say in kernels whether they
   touch, against contacts in a map.
   SPDX-License-Identifier: MIT OR Unlicense */

#include "../../common/nlist_touch_model.h"

namespace {

/* The same roundings as touch_test, which is called on the host. */
__device__ bool touches_there(const real *pos, double radius, int32_t i, int32_t j)
{
    double d2 = 0;
    for (int a = 0; a < 3; a++) {
        double const d = (double)pos[3 * j + a] - (double)pos[3 * i + a];
        d2 = __dadd_rn(d2, __dmul_rn(d, d));
    }
    return d2 <= radius * radius;
}

__device__ void count_one(void *history)
{
    int32_t steps;
    memcpy(&steps, history, sizeof steps);
    steps++;
    memcpy(history, &steps, sizeof steps);
}

__global__ void touch_rows(__grid_constant__ const nlist_device device, const real *pos,
                           double radius)
{
    int32_t const i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    nlist_each e = nlist_of(&device.list, i);
    while (nlist_next(&e))
        if (nlist_touch(&e, touches_there(pos, radius, i, e.id))) count_one(e.history);
}

struct TouchEach {
    nlist_device device;
    const real *pos;
    double radius;
    __device__ void operator()(int32_t i, int32_t j, void *history, int64_t entry) const
    {
        if (nlist_touch_entry(&device, entry, touches_there(pos, radius, i, j))) count_one(history);
    }
};

struct TouchSum {
    const real *pos;
    double radius;
    __device__ int operator()(int32_t i, int32_t j, void *history, real *own, real *other) const
    {
        if (!touches_there(pos, radius, i, j)) return 0;
        count_one(history);
        own[0] = other[0] = 1;
        return 1;
    }
};

} /* namespace */

/* One step: by a kernel, by nlist_cuda_each, or by a sum, with a unit (not 0) or without. */
static void touch_on_device(nlist_cuda *gpu, int way, double unit, const real *pos, double radius,
                            real *sums)
{
    nlist_sums how = {};
    how.unit = unit;
    if (way == 0) {
        launch(TOUCH_MOST, touch_rows, gpu->device, pos, radius);
    } else if (way == 1) {
        CHECK_RESULT(nlist_cuda_each(gpu, TouchEach{gpu->device, pos, radius}, stream), NLIST_OK);
    } else {
        how.mode = (nlist_mode)(way - 2);
        CHECK_RESULT(nlist_cuda_sum<1>(gpu, &how, TouchSum{pos, radius}, sums, stream), NLIST_OK);
    }
}

/* A sum over contacts, of 1 each, is their number. */
static void check_touch_sums(touch_model *m, const std::vector<real> &sums)
{
    for (int32_t i = 0; i < m->n; i++) {
        int32_t contacts = 0;
        for (int32_t j = 0; j < m->n; j++) contacts += j != i && touch_of(m, i, j)->steps > 0;
        CHECK(sums[(size_t)i] == (real)contacts);
    }
}

static void touching_life(uint64_t seed, int64_t met[4])
{
    touch_model m = touch_start(seed);
    std::vector<real> const zeros(TOUCH_MOST, 0);
    Device<real> d_sums(zeros);
    nlist_cuda gpu = {};
    nlist list = {};
    nlist_desc d = {};
    d.radius = m.radius;
    d.skin = (real)0.2;
    d.half = touch_roll(&m, 2);
    d.layout = (nlist_layout)touch_roll(&m, 4);
    d.width = d.layout == NLIST_HYBRID ? touch_roll(&m, 2) * 2 : d.layout == NLIST_STATIC ? 8 : 0;
    d.history = touch_roll(&m, 2) ? 16 : 4;
    d.events = touch_roll(&m, 4) > 0;
    d.contacts = 1;
    d.grow = 1;
    for (int step = 0; step < 30; step++) {
        int32_t again = 1;
        int way = touch_roll(&m, 6);
        if (way == 5 && d.width != 0) way = 0; /* NLIST_REDUCE has its own widths */
        if (step > 0 && touch_roll(&m, 8) == 0) {
            int32_t new_id[TOUCH_MOST];
            touch_renumber(&m, new_id);
            Device<int32_t> d_new(std::vector<int32_t>(new_id, new_id + m.n));
            CHECK_RESULT(nlist_cuda_remap(&gpu, d_new.p, m.n, stream), NLIST_OK);
        }
        if (step > 0) touch_move(&m);
        Device<real> d_pos(std::vector<real>(m.pos, m.pos + 3 * m.n));
        if (step > 0 && touch_roll(&m, 4) == 0) { /* there and back */
            CHECK_RESULT(nlist_cuda_download(&list, &gpu, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_upload(&gpu, &list, stream), NLIST_OK);
        }
        if (step > 0) {
            CHECK_RESULT(nlist_cuda_moved(&gpu, d_pos.p, 0, stream), NLIST_OK);
            again = facts_of(gpu).moved > 0;
        }
        if (again) {
            CHECK_RESULT(nlist_cuda_build_brute(&gpu, &d, d_pos.p, 0, m.n, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_check(&gpu, stream), NLIST_OK);
            CHECK_RESULT(nlist_cuda_download(&list, &gpu, stream), NLIST_OK);
            CHECK(touch_built(&m, &list) == 0);
        }
        touch_count(&m);
        d_sums.set(zeros);
        touch_on_device(&gpu, way, step % 2 ? 0.25 : 0, d_pos.p, (double)m.radius, d_sums.p);
        CHECK_RESULT(nlist_cuda_download(&list, &gpu, stream), NLIST_OK);
        CHECK(touch_kept(&m, &list) == 0);
        if (way >= 2) check_touch_sums(&m, d_sums.get());
    }
    for (int k = 0; k < 4; k++) met[k] += m.met[k];
    hmfree(m.map);
    nlist_free(&list);
    nlist_cuda_free(&gpu);
}

static void test_touching()
{
    int64_t met[4] = {0, 0, 0, 0};
    int const lives = 16;
    for (int k = 0; k < lives; k++) touching_life((uint64_t)k, met);
    for (int64_t count : met) CHECK(count > lives);
}
