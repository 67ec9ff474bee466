/* test_ugrid.cu - tests of the CUDA half of ugrid.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/ugrid/test_ugrid.cu -o test_ugrid
       ./test_ugrid --n 5000 --share 4 --only product
           particles per case; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer particles. Nothing but CUDA and the C++
   library is needed.

   What is compared, and how exactly:
   - UGRID_SORT and desc.deterministic: every array has the bits of the serial build.
   - Other builds: each cell holds the same entries, in any order; ugrid_validate agrees.
   - Walks: a kernel writes down what its iterators met; a walk on the CPU through the downloaded
     grid must meet the same particles in the same order.
   - Searches: distances are computed in the same bits on both sides, so counts and rows are equal,
     not nearly equal. */

#include <cuda_runtime.h>
#include <cub/cub.cuh>

/* Calls of CUDA in ugrid.cu: of those that copy or set memory, number `spoil_at` from now on fails,
   and of questions about the GPU number `unknown_at` (0: none). */
static long spoil_at, unknown_at;

static cudaError_t spoiled(long *left, cudaError_t done)
{
    return *left > 0 && --*left == 0 ? cudaSetDevice(-1) : done;
}

#define cudaMemcpyAsync(...) spoiled(&spoil_at, cudaMemcpyAsync(__VA_ARGS__))
#define cudaMemsetAsync(...) spoiled(&spoil_at, cudaMemsetAsync(__VA_ARGS__))
#define cudaDeviceGetAttribute(...) spoiled(&unknown_at, cudaDeviceGetAttribute(__VA_ARGS__))

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"

#undef cudaMemcpyAsync
#undef cudaMemsetAsync
#undef cudaDeviceGetAttribute

#define TESTED ugrid
#include "../testing.h"
#include <limits>

/* One of `every` cases; scattered, so that no period of the product falls together with it. */
static bool chosen(size_t k, int every)
{
    return ((uint32_t)k * 2654435761u >> 8) % (uint32_t)every == 0;
}

#include "cases.cu"
#include "searches.cu"
#include "builds.cu"
#include "filter.cu"
#include "memory.cu"
#include "parts.cu"
#include "twins.cu"
#include "bad_calls.cu"
#include "graphs.cu"
#include "functors.cu"
#include "large.cu"

static const Test tests[] = {
    {"few", test_few},
    {"sparse", test_sparse},
    {"product", test_product},
    {"boxes", test_boxes_of_particles},
    {"bad boxes", test_bad_boxes_of_particles},
    {"crowds", test_crowds},
    {"small", test_small},
    {"parts", test_parts},
    {"order", test_order},
    {"twins", test_twins},
    {"rebuild", test_rebuild},
    {"stride", test_stride},
    {"fit", test_fit},
    {"not finite", test_not_finite},
    {"skip invalid", test_skip_invalid},
    {"cell full", test_cell_full},
    {"half rows", test_half_rows},
    {"outside", test_outside},
    {"filter", test_filter},
    {"reserve", test_reserve},
    {"out of memory", test_out_of_memory},
    {"refusals", test_refusals},
    {"growth", test_growth},
    {"growth, short of memory", test_growth_short_of_memory},
    {"not built", test_not_built},
    {"check waits", test_check_waits},
    {"launch errors", test_launch_errors},
    {"failing calls", test_failing_calls},
    {"failing uploads", test_failing_uploads},
    {"unknown GPU", test_unknown_gpu},
    {"graph", test_graph},
    {"two streams", test_two_streams},
    {"functors", test_functors},
    {"split", test_split},
    {"split, build", test_split_build},
    {"split, crowd", test_split_crowd},
    {"crowd", test_crowd},
    {"totals", test_totals},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    n_max = 400;
    /* blocks take turns: all shared memory is copied at each */
    share = small || emu_options()->blocks > 1 ? 80 : 20;
#else
    n_max = small ? 400 : 1000;
    share = small ? 40 : 32; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 8}, {"--share", &share, 1}});
    return run_tests(tests);
}
