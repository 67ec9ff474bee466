/* nearfield64.cu - nearfield.cu for doubles: a library of its own, libnearfield64_cuda.so beside
   the other. (In one library C++ would merge what both instantiate from templates by the names of
   the headers' structs, which have other sizes here.)
   SPDX-License-Identifier: MIT OR Unlicense */

#define UGRID_REAL double
#define LBVH_REAL double
#define NLIST_REAL double
#define NBODY_REAL double
#define nearfield_sizes      nearfield_f64_sizes
#define nearfield_rays       nearfield_f64_rays
#define nearfield_run        nearfield_f64_run
#define nearfield_search_new  nearfield_f64_search_new
#define nearfield_search_free nearfield_f64_search_free
#define nearfield_search_run  nearfield_f64_search_run
#define nearfield_search_copy nearfield_f64_search_copy
#define nearfield_search_rows nearfield_f64_search_rows
#define nearfield_search_end  nearfield_f64_search_end
#define nearfield_cuda_alloc nearfield_f64_cuda_alloc
#define nearfield_cuda_free  nearfield_f64_cuda_free
#define nearfield_cuda_fetch nearfield_f64_cuda_fetch
#define nearfield_cuda_order nearfield_f64_cuda_order
#define nearfield_cuda_few       nearfield_f64_cuda_few
#define nearfield_cuda_few_count nearfield_f64_cuda_few_count
#define nearfield_cuda_few_write nearfield_f64_cuda_few_write
#define nearfield_cuda_entries   nearfield_f64_cuda_entries
#define nearfield_cuda_queries   nearfield_f64_cuda_queries
#define nearfield_cuda_nearest   nearfield_f64_cuda_nearest
#include "nearfield.cu"
