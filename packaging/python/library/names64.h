/* names64.h - other names for what nearfield.c and nearfield.cu define themselves, in their halves
   for doubles.
   SPDX-License-Identifier: MIT OR Unlicense */

#define UGRID_REAL double
#define LBVH_REAL double
#define NLIST_REAL double
#define NBODY_REAL double
#define nearfield_sizes          nearfield_f64_sizes
#define nearfield_rays           nearfield_f64_rays
#define nearfield_run            nearfield_f64_run
#define nearfield_search_new     nearfield_f64_search_new
#define nearfield_search_free    nearfield_f64_search_free
#define nearfield_search_run     nearfield_f64_search_run
#define nearfield_search_copy    nearfield_f64_search_copy
#define nearfield_search_rows    nearfield_f64_search_rows
#define nearfield_search_end     nearfield_f64_search_end
#define nearfield_pairs          nearfield_f64_pairs
#define nearfield_alloc          nearfield_f64_alloc
#define nearfield_free           nearfield_f64_free
#define nearfield_drop           nearfield_f64_drop
#define nearfield_hold           nearfield_f64_hold
#define nearfield_world_insert   nearfield_f64_world_insert
#define nearfield_world_move     nearfield_f64_world_move
#define nearfield_world_remove   nearfield_f64_world_remove
#define nearfield_world_set      nearfield_f64_world_set
#define nearfield_world_pairs    nearfield_f64_world_pairs
#define nearfield_world_events   nearfield_f64_world_events
#define nearfield_world_overlaps nearfield_f64_world_overlaps
#define nearfield_world_cast     nearfield_f64_world_cast
#define nearfield_world_nearest  nearfield_f64_world_nearest
#define nearfield_again          nearfield_f64_again
#define nearfield_lend           nearfield_f64_lend
#define nearfield_untaken        nearfield_f64_untaken
#define nearfield_jax_pairs      nearfield_f64_jax_pairs
#ifdef __CUDACC__
#define nearfield_cuda_alloc     nearfield_f64_cuda_alloc
#define nearfield_cuda_free      nearfield_f64_cuda_free
#define nearfield_cuda_fetch     nearfield_f64_cuda_fetch
#define nearfield_cuda_order     nearfield_f64_cuda_order
#define nearfield_cuda_device    nearfield_f64_cuda_device
#define nearfield_cuda_few       nearfield_f64_cuda_few
#define nearfield_cuda_few_count nearfield_f64_cuda_few_count
#define nearfield_cuda_few_write nearfield_f64_cuda_few_write
#define nearfield_cuda_entries   nearfield_f64_cuda_entries
#define nearfield_cuda_queries   nearfield_f64_cuda_queries
#define nearfield_cuda_nearest   nearfield_f64_cuda_nearest
#endif
