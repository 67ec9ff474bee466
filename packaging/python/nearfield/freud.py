"""AABBQuery and LinkCell in the form of ``freud.locality``.

SPDX-License-Identifier: MIT OR Unlicense

    from nearfield.freud import AABBQuery       # was: from freud.locality import AABBQuery

Boxes are freud's (or anything with Lx, Ly, Lz, xy, xz, yz, periodic, is2D), or what `box` takes.
Unlike freud's, r_max may exceed half of the box: each image is a neighbour of its own. Not there:
plot, the GSD readers of from_system, and the NeighborList's filter by a mask from other modules of
freud: convert by ``freud.locality.NeighborList.from_arrays(*found.for_freud())``.
"""
from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ._arrays import Array
from ._queries import Neighbors, nearest, query

__all__ = ["AABBQuery", "LinkCell", "NeighborList"]

_ARGUMENTS = "mode", "r_min", "r_max", "r_guess", "scale", "num_neighbors", "exclude_ii"


class NeighborList:
    """Bonds, sorted by query point and then by point (or by distance).

    Attributes
    ----------
    query_point_indices, point_indices : ndarray of uint32, (m,)
    distances, weights : ndarray of float32, (m,)
    vectors : ndarray of float32, (m, 3)
    num_query_points, num_points : int
    neighbor_counts, segments : ndarray of uint32, (num_query_points,)
        How many bonds each query point has, and where they begin (0 without).
    """

    query_point_indices: Array
    point_indices: Array
    distances: Array
    weights: Array
    vectors: Array
    num_query_points: int
    num_points: int
    neighbor_counts: Array
    segments: Array

    def __init__(self, found: Neighbors, keep: Array, by_distance: bool) -> None:
        rows, ids, d = found.rows[keep], found.ids[keep], found.distances[keep]
        order = np.lexsort((ids, d, rows) if by_distance else (d, ids, rows))
        self.query_point_indices = rows[order].astype(np.uint32)
        self.point_indices = ids[order].astype(np.uint32)
        self.distances = d[order].astype(np.float32)
        vectors = np.zeros((len(order), 3), np.float32)
        vectors[:, :found.vectors.shape[1]] = found.vectors[keep][order]
        self.vectors, self.weights = vectors, np.ones(len(order), np.float32)
        self.num_query_points, self.num_points = len(found.offsets) - 1, found.n
        self.neighbor_counts = np.bincount(rows, minlength=self.num_query_points).astype(np.uint32)
        begin = np.cumsum(self.neighbor_counts) - self.neighbor_counts
        self.segments = np.where(self.neighbor_counts > 0, begin, 0).astype(np.uint32)

    def __len__(self) -> int:
        return len(self.distances)

    def __getitem__(self, key: Any) -> Array:
        """Query point and point of bonds."""
        pairs: Array = np.stack([self.query_point_indices, self.point_indices], axis=1)[key]
        return pairs

    def for_freud(self) -> tuple[Any, ...]:
        """The arguments of freud's NeighborList.from_arrays."""
        return (self.num_query_points, self.num_points, self.query_point_indices,
                self.point_indices, self.vectors, self.weights)


class _Result:
    """What a query found: an iterator of (query point, point, distance), or a list."""

    def __init__(self, found: Neighbors, keep: Array, by_distance: bool) -> None:
        self._found, self._keep, self._by_distance = found, keep, by_distance

    def toNeighborList(self, sort_by_distance: bool = False) -> NeighborList:
        return NeighborList(self._found, self._keep, sort_by_distance)

    def __iter__(self) -> Iterator[tuple[int, int, float]]:
        bonds = NeighborList(self._found, self._keep, self._by_distance)
        return zip(bonds.query_point_indices.tolist(), bonds.point_indices.tolist(),
                   bonds.distances.tolist())


class AABBQuery:
    """Neighbours of points in a periodic box.

    Parameters
    ----------
    box : freud.box.Box, or lengths (Lx, Ly) or (Lx, Ly, Lz), or a matrix of vectors in columns
    points : array_like, (n, 3)

    Examples
    --------
    >>> from nearfield.freud import AABBQuery
    >>> search = AABBQuery((4, 4, 4), [[1.9, 0, 0], [-1.9, 0, 0]])
    >>> [(i, j, round(d, 3)) for i, j, d in search.query(search.points, dict(r_max=1.0))]
    [(0, 0, 0.0), (0, 1, 0.2), (1, 0, 0.2), (1, 1, 0.0)]
    """

    box: Any
    points: Array

    def __init__(self, box: Any, points: Any) -> None:
        self.box, self.points = box, np.atleast_2d(np.asarray(points, np.float32))
        self._cell, self._pbc = _cell_of(box)

    @classmethod
    def from_system(cls, system: Any) -> AABBQuery:
        """From (box, points), another query, or anything with box and points."""
        box, points = system if isinstance(system, tuple) else (system.box, system.points)
        return cls(box, points)

    def query(self, query_points: Any, query_args: dict[str, Any]) -> _Result:
        """Neighbours of other points.

        Parameters
        ----------
        query_points : array_like, (m, 3)
        query_args : dict
            r_max, or num_neighbors (of each image the nearest), with r_min and exclude_ii; mode
            "ball" or "nearest" says which of both is meant. exclude_ii: no bonds between equal
            indices, images included. r_guess and scale are accepted, and not needed.
        """
        unknown = query_args.keys() - set(_ARGUMENTS)
        if unknown:
            raise ValueError("query_args: unknown %s; expected %s" % (
                ", ".join(sorted(unknown)), ", ".join(_ARGUMENTS)))
        at = np.atleast_2d(np.asarray(query_points, np.float32))
        k, r_max = query_args.get("num_neighbors", 0), query_args.get("r_max")
        own = bool(query_args.get("exclude_ii", False))
        near = query_args.get("mode", "nearest" if k else "ball") == "nearest"
        r_min = query_args.get("r_min", 0)
        if near:
            reach = np.inf if r_max is None else r_max
            return _Result(*self._nearest(at, k, r_min, reach, own), True)
        if r_max is None:
            raise ValueError("query_args: r_max or num_neighbors is missing")
        found = query(self.points, at, r_max, cell=self._cell, pbc=self._pbc)
        return _Result(found, _kept(found, r_min, own), False)

    def _nearest(self, at: Array, k: int, r_min: float, reach: float,
                 own: bool) -> tuple[Neighbors, Array]:
        """The k nearest of those that count: so many more are looked for until each row has k, or
        has all there are."""
        asked, alone = k + own, int(own and len(self.points) == 1)     # its row stays empty
        while True:
            found = nearest(self.points, asked, at, reach=reach, cell=self._cell, pbc=self._pbc)
            keep = _kept(found, r_min, own)
            before = np.append(0, np.cumsum(keep))[found.offsets]
            short = (np.diff(before) < k) & (np.diff(found.offsets) == asked)
            if not short[alone:].any():
                place = np.cumsum(keep) - before[found.rows]
                return found, keep & (place <= k)
            asked *= 2


class LinkCell(AABBQuery):
    """The same; cell_width is accepted, and not needed."""

    def __init__(self, box: Any, points: Any, cell_width: float = 0) -> None:
        super().__init__(box, points)


def _kept(found: Neighbors, r_min: float, exclude_ii: bool) -> Array:
    """Which entries count."""
    keep: Array = found.distances >= r_min
    return keep & (found.rows != found.ids) if exclude_ii else keep


def _cell_of(box: Any) -> tuple[Array, Array]:
    """Vectors in rows, and which repeat. The box of a plane has a third vector, of no use."""
    if hasattr(box, "Lx"):
        lx, ly, lz = box.Lx, box.Ly, box.Lz
        flat = bool(getattr(box, "is2D", lz == 0))
        lz = 1.0 if flat else lz
        pbc = np.array(box.periodic, bool) & [True, True, not flat]
        return np.array([[lx, 0, 0], [box.xy * ly, ly, 0],
                         [0 if flat else box.xz * lz, 0 if flat else box.yz * lz, lz]]), pbc
    sides = np.asarray(box, float)
    if sides.shape == (3, 3):
        return sides.T.copy(), np.array([True] * 3)
    if sides.shape == (2,) or (sides.shape == (3,) and sides[2] == 0):
        return np.diag([sides[0], sides[1], 1.0]), np.array([True, True, False])
    if sides.shape != (3,):
        raise ValueError("box: expected a freud.box.Box, 2 or 3 lengths, or a matrix (3, 3)")
    return np.diag(sides), np.array([True] * 3)
