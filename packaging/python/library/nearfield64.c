/* nearfield64.c - nearfield.c for doubles. Both can be in one library: here every function has
   another name.
   SPDX-License-Identifier: MIT OR Unlicense */

#include "names64.h"
#include "nearfield.c"
