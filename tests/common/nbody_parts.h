/* nbody_parts.h - all parts of nbody.h, for tests: included before it.
   SPDX-License-Identifier: MIT OR Unlicense */

#define NBODY_WITH_STEP
#define NBODY_WITH_POINTS
#define NBODY_WITH_BLOCKS
#define NBODY_WITH_SETS
#define NBODY_WITH_PERIODIC
#define NBODY_WITH_VORTEX
#define NBODY_WITH_FUNCTION
