/* test_lbvh.cu - tests of the CUDA half of lbvh.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/lbvh/test_lbvh.cu -o test_lbvh
       ./test_lbvh --n 5000 --share 4 --only build
           most elements of a search; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer elements. Nothing but CUDA and the C++
   library is needed.

   What is compared, and how exactly: everything, bit for bit.
   - Trees: nodes, prefixes, masks and codes of a build, a refit, an upload, against those of the
     serial code.
   - Searches: counts, offsets, rows, pairs in their order, ids and distances of the nearest. The
     serial half is held against brute force in tests/unit/lbvh/test_lbvh.c; here brute force only
     counts pairs, so that an error that both halves share is seen once more.
   - Walks: a kernel writes down what each iterator met, and the same loop on the CPU has to have
     met the same. */

#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define TESTED lbvh
#include "../testing.h"

static int size_max;            /* most elements of a build */

#include "cases.cu"
#include "searches.cu"
#include "walks.cu"
#include "builds.cu"
#include "bad_elements.cu"
#include "again.cu"
#include "memory.cu"
#include "bad_calls.cu"
#include "graphs.cu"
#include "large.cu"
#include "wide.cu"
#include "keys.cu"

static const Test tests[] = {
    {"few", test_few},
    {"build", test_build},
    {"deep", test_deep},
    {"searches", test_searches},
    {"nearest", test_nearest},
    {"dense", test_dense},
    {"invalid", test_invalid},
    {"rebuild", test_rebuild},
    {"refit", test_refit},
    {"upload", test_upload},
    {"download", test_download},
    {"reserve", test_reserve},
    {"out of memory", test_out_of_memory},
    {"waits", test_waits},
    {"growth", test_growth},
    {"exact", test_exact},
    {"not built", test_not_built},
    {"refused builds", test_refused_builds},
    {"refused searches", test_refused_searches},
    {"launch errors", test_launch_errors},
    {"graph", test_graph},
    {"two streams", test_two_streams},
    {"many blocks", test_many_blocks},
    {"large", test_large},
    {"keys of one clump", test_keys_of_one_clump},
    {"keys of clusters", test_keys_of_clusters},
    {"keys by quantiles", test_keys_by_quantiles},
    {"keys of uniform points", test_keys_of_uniform_points},
    {"sort of equal codes", test_sort_of_equal_codes},
    {"sort unseen by samples", test_sort_unseen_by_samples},
    {"sort reserved", test_sort_reserved},
    {"wide", test_wide},
    {"wide deep", test_wide_deep},
    {"wide slivers", test_wide_slivers},
    {"wide far", test_wide_far},
    {"wide copies", test_wide_copies},
    {"wide graph", test_wide_graph},
    {"wide refusals", test_wide_refusals},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    /* blocks take turns: all shared memory is copied at each */
    bool const slow = small || emu_options()->blocks > 1;
    n_max = slow ? 260 : 400;
    size_max = slow ? 520 : 4100;
    share = emu_options()->blocks > 1 ? 360 : small ? 120 : 42;
#else
    n_max = small ? 400 : 1000;
    size_max = small ? 2100 : 4100;
    share = small ? 60 : 36; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 8}, {"--share", &share, 1}});
    size_max = std::max(size_max, n_max);
    return run_tests(tests);
}
