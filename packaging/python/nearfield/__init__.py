"""Neighbours of particles: uniform grids, trees, contact lists and N-body sums, in C.

A thin skin over the headers ugrid.h, lbvh.h, nlist.h and nbody.h: NumPy arrays in and out, nothing
is computed in Python that C can do.

    neighbor_list   pairs of atoms within a cutoff: the form of ASE (matscipy: neighbour_list,
                    vesin: NeighborList, ase_neighbor_list; freud: nearfield.freud)
    neighbors       the same as rows, as pairs, sparse or padded; query: around other points;
                    nearest: the k nearest. In any cell
    Grid            neighbours within a radius, in a box that may be periodic (ugrid.h)
    Tree            boxes, points, spheres, triangles: overlaps, nearest, rays (lbvh.h)
    World           boxes that come, move and go: pairs, casts, rays (more/lbvh_world.h)
    List            contacts that last: history, events, a skin (nlist.h)
    NBody           forces of all on all, in the plane (nbody.h)
    nearfield.torch     operators for torch, differentiable (needs torch)
    nearfield.jax       neighbor_list for JAX on the CPU, differentiable (needs jax)
    nearfield.ase       a calculator for ASE (needs ase)

Keywords    are the fields of the C structs: the comments in the headers say what each does. Enums
            are words: method="sort".
Precision   follows the first array: float32 stays float32, everything else is computed in float64.
            Arrays of a foreign byte order are refused.
Memory      Arrays of that type with any distance between their rows (x[:, :3]) are read where they
            are. Results are new arrays, but for those said to be views: these keep their memory
            alive, show the state as of the last build, and are read only, but for List.history.
Errors      nearfield.Error, with the header's own text. NaN is refused, with the index of the first
            (GPU: see check). ValueError: arrays of another shape, and searches that could not find
            anything.
Threads     Calls release Python's lock. Different objects may be used at once, also one object by
            many who only search; a build, refit, load or update of an object that another thread
            uses, and a search while another builds, are a RuntimeError. neighbor_list by any
            number of threads, and after a fork.
Types       are those of the CPU's results: on a GPU they are DeviceArrays.
GPU         Arrays with __cuda_array_interface__ (CuPy, torch) are computed with where they are, by
            libnearfield_cuda.so. Results are DeviceArrays: cupy.asarray(a), a.numpy(),
            torch.from_dlpack(a). Work is queued on `stream` (an int, or a stream of CuPy or torch;
            default: the legacy default stream), and only what returns a size waits: count_pairs,
            pairs, neighbors, query, overlaps, moved, check and numpy(). Bad numbers are told by
            check().

SPDX-License-Identifier: MIT OR Unlicense
"""
from ._arrays import DeviceArray
from ._binding import Error, load_library
from ._declared import VERSION as __version__
from ._neighbors import (NeighborList, ase_neighbor_list, neighbor_list, neighbour_list,
                         primitive_neighbor_list)
from ._objects import EVENT, Grid, List, NBody, Tree
from ._queries import Neighbors, nearest, neighbors, query
from ._worlds import World

__all__ = ["Grid", "Tree", "World", "List", "NBody", "neighbor_list", "ase_neighbor_list",
           "primitive_neighbor_list", "neighbour_list", "NeighborList", "neighbors", "query",
           "nearest", "Neighbors", "DeviceArray", "Error", "EVENT", "load_library",
           "__version__"]
