/* nearfield64.c - nearfield.c for doubles. Both can be in one library: here every function has
   another name.
   SPDX-License-Identifier: MIT OR Unlicense */

#define UGRID_REAL double
#define LBVH_REAL double
#define NLIST_REAL double
#define NBODY_REAL double
#define nearfield_sizes   nearfield_f64_sizes
#define nearfield_rays    nearfield_f64_rays
#define nearfield_run     nearfield_f64_run
#define nearfield_search_new  nearfield_f64_search_new
#define nearfield_search_free nearfield_f64_search_free
#define nearfield_search_run  nearfield_f64_search_run
#define nearfield_search_copy nearfield_f64_search_copy
#define nearfield_search_rows nearfield_f64_search_rows
#define nearfield_search_end  nearfield_f64_search_end
#include "nearfield.c"
