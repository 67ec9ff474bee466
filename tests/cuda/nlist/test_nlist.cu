/* test_nlist.cu - tests of the CUDA half of nlist.h, against the serial half.
   SPDX-License-Identifier: MIT OR Unlicense

       nvcc -std=c++17 -arch=native -O3 -I. tests/cuda/nlist/test_nlist.cu -o test_nlist
       ./test_nlist --n 3000 --share 4 --only history
           most particles of a case; every 4th case; tests whose names hold a word

   The same file runs on the CPU under tests/emu, with fewer particles. Nothing but CUDA and the C++
   library is needed.

   What is compared, and how exactly:
   - With desc.deterministic every array of the list against the serial list, bit for bit; without
     it rows as sequences, where the source has an order, else, and in half lists, as sets; history
     always by row and partner.
   - History also against a dictionary that the test keeps by the names of the particles, over
     sorting, inserting and deleting.
   - Sums against sums in double, within rounding; where they are defined, against the serial sums,
     bit for bit.
   The serial half is held against brute force in its own tests. */

#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#define NLIST_WITH_BOXES
#define NLIST_WITH_TUNE
#include "nlist.h"
#include "../../common/nlist_oracle.h"
#include "../testing.h"

#include "cases.cu"
#include "both.cu"
#include "lists.cu"
#include "history.cu"
#include "handover.cu"
#include "rows.cu"
#include "half.cu"
#include "triangles.cu"
#include "sums.cu"
#include "too_small.cu"
#include "skin.cu"
#include "touch.cu"
#include "bad_input.cu"
#include "copies.cu"
#include "memory.cu"
#include "unchecked.cu"
#include "bad_calls.cu"
#include "graphs.cu"
#include "large.cu"

static const Test tests[] = {
    {"empty", test_empty},
    {"few", test_few},
    {"build", test_build},
    {"rebuild", test_rebuild},
    {"truth", test_truth},
    {"twins", test_twins},
    {"history", test_history},
    {"events", test_events},
    {"handover", test_handover},
    {"long rows", test_long_rows},
    {"rows", test_rows},
    {"rows history", test_rows_history},
    {"rows reserved", test_rows_reserved},
    {"rows refused", test_rows_refused},
    {"half", test_half},
    {"half giant", test_half_giant},
    {"half records", test_half_records},
    {"mesh", test_mesh},
    {"mesh contacts", test_mesh_contacts},
    {"mesh skin", test_mesh_skin},
    {"sums", test_sums},
    {"morton", test_morton},
    {"mesh sums", test_mesh_sums},
    {"each", test_each},
    {"sum overflow", test_sum_overflow},
    {"hidden sum overflow", test_sum_overflow_hidden},
    {"overflow", test_overflow},
    {"grow", test_grow},
    {"moved", test_moved},
    {"touching", test_touching},
    {"moved nan", test_moved_nan},
    {"not finite", test_not_finite},
    {"bad pairs", test_bad_pairs},
    {"bad names", test_bad_names},
    {"bad period", test_bad_period},
    {"upload", test_upload},
    {"reserve", test_reserve},
    {"out of memory", test_out_of_memory},
    {"growth", test_growth},
    {"exact memory", test_exact_memory},
    {"stream of memory", test_stream_of_memory},
    {"download memory", test_download_memory},
    {"tight memory", test_tight_memory},
    {"unfit remap", test_unfit_remap},
    {"unfit layouts", test_unfit_layouts},
    {"unfit first", test_unfit_first},
    {"unfit meshes", test_unfit_meshes},
    {"unfit dimensions", test_unfit_dimensions},
    {"domain empties", test_domain_empties},
    {"not built", test_not_built},
    {"refused builds", test_refused_builds},
    {"refused layouts", test_refused_layouts},
    {"refused sources", test_refused_sources},
    {"refused meshes", test_refused_meshes},
    {"refused sums", test_refused_sums},
    {"launch errors", test_launch_errors},
    {"graph", test_graph},
    {"two streams", test_two_streams},
    {"large", test_large},
};

int main(int argc, char **argv)
{
    bool const small = getenv("TEST_SMALL") != nullptr;
#ifdef CUDA_EMU
    /* blocks take turns: all shared memory is copied at each */
    bool const slow = small || emu_options()->blocks > 1;
    n_max = emu_options()->blocks > 1 ? 40 : slow ? 80 : 260;
    share = emu_options()->blocks > 1 ? 240 : small ? 40 : 20;
#else
    n_max = small ? 300 : 1000;
    share = small ? 20 : 32; /* within a minute; --share 1 runs every case: many minutes */
#endif
    read_options(argc, argv, {{"--n", &n_max, 8}, {"--share", &share, 1}});
    return run_tests(tests);
}
