/* own_law.h - a law of the caller for both sides, for the kernels of tests: included before nbody.h
   by a file that makes its CUDA half. The functions have names that nbody.h uses too. `user`, which
   is not read, tells two laws apart. No product is followed by a sum, so that nvcc has nothing to
   fuse: the same bits on both sides.
   SPDX-License-Identifier: MIT OR Unlicense */
#pragma once

inline __host__ __device__ double own_distance(double d, void *user)
{
    return d + (user ? 0.25 : 0.03125);
}

inline __host__ __device__ double force(double d, void *user)
{
    return 1 / (own_distance(d, user) * own_distance(d, user));
}

inline __host__ __device__ double potential(double d, void *user)
{
    return -1 / own_distance(d, user);
}

#define NBODY_WITH_FUNCTION
#define NBODY_FORCE force
#define NBODY_POTENTIAL potential
