/* nearfield64.cu - nearfield.cu for doubles: a library of its own, libnearfield64_cuda.so beside
   the other. (In one library C++ would merge what both instantiate from templates by the names of
   the headers' structs, which have other sizes here.)
   SPDX-License-Identifier: MIT OR Unlicense */

#include "names64.h"
#include "nearfield.cu"
