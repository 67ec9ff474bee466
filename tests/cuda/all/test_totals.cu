/* test_totals.cu - pairs and lists whose totals no 32-bit number holds: all pairs are within the
   radius.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/all/test_totals.cu -o test_totals &&
       ./test_totals

   On a GPU 100,000 points: 5e9 pairs, 1e10 entries. Under tests/emu a few, so that the text is run
   there, too. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#include "nlist.h"
#define TESTED ugrid
#include "../testing.h"

#ifdef CUDA_EMU
static int32_t const n = 300;
#else
static int32_t const n = 100000;
#endif

/* More entries than a list can hold are refused, and nothing is written outside of it. Where a scan
   counts them it stops at 2^33 - 1. */
static void lists(const ugrid_cuda *grid, const float *d_pos, int64_t entries)
{
    for (int k = 0; k < 4; k++) {
        nlist_cuda list = {};
        nlist_desc d = {};
        d.layout = k / 2 ? NLIST_HYBRID : NLIST_DYNAMIC;
        d.width = k / 2 ? 4 : 0;
        d.deterministic = k % 2;
        d.radius = 1;
        d.capacity = 1000;
        int64_t const needed = entries - (int64_t)n * d.width, most = ((int64_t)1 << 33) - 1;
        CHECK(nlist_cuda_build_ugrid(&list, &d, grid, d_pos, 0, n, stream) == NLIST_OK);
        CHECK(nlist_cuda_check(&list, stream) ==
              (needed > INT32_MAX - 1024 ? NLIST_TOO_MANY : NLIST_LIST_FULL));
        CHECK(list.device.list.needed_entries ==
              (d.deterministic && needed > most ? most : needed));
        nlist_cuda_free(&list);
    }
}

static void test_totals()
{
    int64_t const pairs = (int64_t)n * (n - 1) / 2;
    std::vector<float> host(3 * (size_t)n);
    /* within 0.05 along each axis */
    for (size_t k = 0; k < host.size(); k++)
        host[k] = (float)(k * 2654435761u % 1000) / 20000 + (float)(k % 3);
    Device<float> pos(host);
    Device<int64_t> total(1), offsets((size_t)n + 1);

    ugrid_cuda grid = {};
    ugrid_desc g = {};
    for (int a = 0; a < 3; a++) g.max[a] = 3;
    g.cell = 1;
    g.deterministic = 1; /* as lists ask of it that are */
    CHECK(ugrid_cuda_build(&grid, &g, pos.p, 0, n, stream) == UGRID_OK);
    CHECK(ugrid_cuda_count_pairs(&grid, 1, total.p, stream) == UGRID_OK);
    CHECK(total.get()[0] == pairs);
    CHECK(ugrid_cuda_neighbors(&grid, 1, 0, offsets.p, nullptr, 0, stream) == UGRID_OK);
    CHECK(offsets.get()[(size_t)n] == 2 * pairs &&
          offsets.get()[(size_t)n - 1] == 2 * pairs - (n - 1));
    lists(&grid, pos.p, 2 * pairs);
    ugrid_cuda_free(&grid);

    lbvh_cuda tree = {};
    lbvh_desc t = {};
    t.kind = LBVH_POINTS;
    t.radius = 1;
    CHECK(lbvh_cuda_build(&tree, &t, pos.p, 0, n, stream) == LBVH_OK);
    CHECK(lbvh_cuda_count_pairs(&tree, total.p, stream) == LBVH_OK);
    CHECK(total.get()[0] == pairs);
    CHECK(lbvh_cuda_pairs(&tree, nullptr, 0, total.p, stream) == LBVH_OK);
    CHECK(total.get()[0] == pairs);
    lbvh_queries q = {};
    CHECK(lbvh_cuda_overlaps(&tree, &q, offsets.p, nullptr, 0, stream) == LBVH_OK);
    CHECK(offsets.get()[(size_t)n] == 2 * pairs);
    lbvh_cuda_free(&tree);
}

static const Test tests[] = {{"totals", test_totals}};

int main(int argc, char **argv)
{
    read_options(argc, argv, {});
    return run_tests(tests);
}
