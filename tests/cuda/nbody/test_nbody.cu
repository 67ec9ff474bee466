/* test_nbody.cu - tests of the CUDA half of nbody.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/nbody/test_nbody.cu -o test_nbody
       ./test_nbody --n 3000 --share 4 --only truth
           most bodies of a case; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer bodies. Nothing but CUDA and the C++
   library is needed.

   What is compared, and how exactly:
   - The tree (frame, cells, places, ids) bit for bit, in every stage; so are the walks that a
     kernel takes through it.
   - Sources, nodes, accelerations and potentials of NBODY_ONE_THREAD, NBODY_MANY_THREADS and
     NBODY_SHARED_MEMORY: bit for bit.
   - Those of NBODY_FAST within rounding: a few millionths (float) of the sum of the sizes of all
     terms, in which nothing cancels. Two runs of it: bit for bit.
   - NBODY_FAST also against the direct sum in double, within the bars of each method and order.
   The serial half is held against the direct sum in its own tests. */

#include <cuda_runtime.h>
#include "tests/common/own_law.h"
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "nbody.h"
#define TESTED nbody
#include "../testing.h"

static bool heavy;              /* the emulator interleaves blocks: little work */
static bool few_large;          /* on the emulator: hardly any large tables */
static int thin = 1;            /* on the emulator: so many times fewer cases */

/* A number that may be at most `bar`. NaN is more. */
#define CHECK_AT_MOST(number, bar) do { \
        double const is_ = (number), most_ = (bar); \
        checks++; \
        if (!(is_ <= most_)) { \
            printf("%.3g, at most %.3g\n", is_, most_); \
            failed(__FILE__, __LINE__, #number " <= " #bar); \
        } \
    } while (0)

/* Host memory as Device's, before anybody has written. */
static std::vector<real> unset(size_t count)
{
    std::vector<real> v(count);
    if (count) memset(v.data(), 0xA5, count * sizeof(real));
    return v;
}

/* One of `every` cases; and one of `most` however large --share is, where nothing is thinned
   out. */
static bool thinned(size_t k, int every, int most) { return chosen(k, every, most * thin); }

static const bool is_float = sizeof(real) == sizeof(float);
static const double epsilon = is_float ? 1.1920929e-7 : 2.220446049250313e-16;

/* How far NBODY_FAST may be from the serial code, as a share of the sum of the sizes of all
   terms. */
static const double fast_share = 40 * epsilon;

static nbody_stage const exact_stages[] = {NBODY_ONE_THREAD, NBODY_MANY_THREADS,
    NBODY_SHARED_MEMORY};
static nbody_stage const all_stages[] = {NBODY_ONE_THREAD, NBODY_MANY_THREADS, NBODY_SHARED_MEMORY,
    NBODY_FAST};
static const char *const stage_names[] = {"fast", "one thread", "many threads", "shared memory"};

#include "cases.cu"
#include "both.cu"
#include "fields.cu"
#include "truth.cu"
#include "points.cu"
#include "again.cu"
#include "vortex.cu"
#include "law.cu"
#include "periodic.cu"
#include "deep.cu"
#include "motion.cu"
#include "checks.cu"
#include "bad_calls.cu"
#include "memory.cu"
#include "graphs.cu"
#include "large.cu"

static const Test tests[] = {
    {"empty", test_empty},
    {"methods", test_methods},
    {"fast", test_fast},
    {"few", test_few},
    {"outputs", test_outputs},
    {"fields", test_fields},
    {"rebuild", test_rebuild},
    {"truth", test_truth},
    {"fields at", test_fields_at},
    {"many points", test_many_points},
    {"many points refused", test_many_points_refused},
    {"again", test_again},
    {"again, bad mass", test_again_bad_mass},
    {"vortices", test_vortices},
    {"vortex cells", test_vortex_cells},
    {"vortex steps", test_vortices_are_not_moved},
    {"own law", test_own_law},
    {"own law, refused", test_own_law_refused},
    {"periodic", test_periodic},
    {"periodic walks", test_periodic_walks},
    {"periodic cells full", test_periodic_cells_full},
    {"periodic memory", test_periodic_memory},
    {"periodic graph", test_periodic_graph},
    {"deep", test_deep},
    {"deep again", test_deep_again},
    {"deep even", test_deep_is_not_needed},
    {"deep cells full", test_deep_cells_full},
    {"deep reserve", test_deep_reserve},
    {"deep capture", test_deep_capture},
    {"crowds", test_crowds},
    {"walks", test_walks},
    {"estimate", test_estimate},
    {"energy", test_energy},
    {"step", test_step},
    {"block steps", test_blocks},
    {"not finite", test_not_finite},
    {"bad mass", test_bad_mass},
    {"too large", test_too_large},
    {"cells full", test_cells_full},
    {"growth", test_growth},
    {"not built", test_not_built},
    {"points without numbers", test_points_without_numbers},
#ifdef CUDA_EMU
    {"waits", test_waits},
#endif
    {"refused descs", test_refused_descs},
    {"refused arguments", test_refused_arguments},
    {"refused questions", test_refused_questions},
    {"reserve", test_reserve},
    {"automatic method", test_automatic_method},
    {"reserve for fewer", test_reserve_for_fewer},
    {"out of memory", test_out_of_memory},
    {"uploads, out of memory", test_uploads_out_of_memory},
    {"uploads, defaults", test_uploads_of_defaults},
    {"launch errors", test_launch_errors},
    {"graph", test_graph},
    {"graph steps", test_graph_steps},
    {"deterministic", test_deterministic},
    {"two streams", test_two_streams},
    {"large", test_large},
    {"large direct", test_large_direct},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    heavy = emu_options()->blocks > 1; /* blocks take turns: all shared memory is copied at each */
    few_large = true;
    thin = heavy || small ? 4 : 2;
    n_max = heavy ? 80 : small ? 100 : 260;
    share = heavy ? 700 : small ? 450 : 200;
#else
    n_max = small ? 500 : 1500;
    share = small ? 200 : 150; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 70}, {"--share", &share, 1}});
    if (heavy) return run_tests(tests, {"fast", "truth", "deep"}); /* too slow there */
    return run_tests(tests);
}
