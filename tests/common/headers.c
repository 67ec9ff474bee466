/* headers.c - the four implementations, compiled once for all tests that only call them.
   SPDX-License-Identifier: MIT OR Unlicense */

#define UGRID_WITH_TUNE
#define UGRID_WITH_NEAREST
#define UGRID_IMPLEMENTATION
#include "ugrid.h"
#define LBVH_WITH_NEAREST
#define LBVH_WITH_OPTIMIZE
#define LBVH_WITH_WIDE
#define LBVH_WITH_WORLD
#define LBVH_IMPLEMENTATION
#include "lbvh.h"
#define NLIST_WITH_BOXES
#define NLIST_WITH_TUNE
#define NLIST_IMPLEMENTATION
#include "nlist.h"
#ifdef NBODY_CUDA
#include "tests/common/own_law.h"
#endif
#include "tests/common/nbody_parts.h"
#define NBODY_IMPLEMENTATION
#include "nbody.h"
