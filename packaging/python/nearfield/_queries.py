"""neighbors, query and nearest: rows of neighbours, in any cell, in the form that is wanted.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ._arrays import Array, dtype_of, host_array, integer, threads_of
from ._neighbors import find


class Neighbors:
    """Neighbours, row after row: those of row q are the entries offsets[q] .. offsets[q + 1] - 1.

    Attributes
    ----------
    offsets : ndarray of int64, (rows + 1,)
    ids : ndarray of int64, (m,)
        Which point.
    distances : ndarray, (m,)
    vectors : ndarray, (m, dim)
        From the row's point to the neighbour.
    shifts : ndarray of int32, (m, dim)
        Periods of the cell to add to the neighbour's position.
    n : int
        How many points there are to find.
    """

    offsets: Array
    ids: Array
    distances: Array
    vectors: Array
    shifts: Array
    n: int

    def __init__(self, offsets: Array, ids: Array, distances: Array, vectors: Array, shifts: Array,
                 n: int, width: int | None = None) -> None:
        self._width = width
        self.offsets, self.ids, self.distances = offsets, ids, distances
        self.vectors, self.shifts, self.n = vectors, shifts, n

    def __len__(self) -> int:
        """Entries of all rows."""
        return len(self.ids)

    def __getitem__(self, q: int) -> Array:
        """The ids of row q."""
        rows = len(self.offsets) - 1
        if not -rows <= integer("row", q) < rows:
            raise IndexError("row %d of %d rows" % (q, rows))
        q %= rows
        return self.ids[self.offsets[q]:self.offsets[q + 1]]

    def __iter__(self) -> Iterator[Array]:
        """The ids of each row."""
        for first, last in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist()):
            yield self.ids[first:last]

    def __repr__(self) -> str:
        return "<nearfield.Neighbors: %d rows, %d entries, n=%d>" % (
            len(self.offsets) - 1, len(self), self.n)

    @property
    def rows(self) -> Array:
        """The row of each entry: ndarray of int64, (m,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def csr(self) -> tuple[Array, Array]:
        """(offsets, ids), as of `Grid.neighbors`."""
        return self.offsets, self.ids

    def pairs(self) -> Array:
        """Row and point of each entry: ndarray of int64, (m, 2)."""
        return np.stack([self.rows, self.ids], axis=1)

    def sparse(self, values: Any = None) -> Any:
        """A scipy.sparse.csr_array (rows, n) of the distances, or of other values, one for each
        entry. Of several images of a point each has an entry; scipy adds them up."""
        from scipy.sparse import csr_array  # type: ignore[import-untyped,unused-ignore]
        values = self.distances if values is None else values
        return csr_array((values, self.ids, self.offsets), (len(self.offsets) - 1, self.n))

    def padded(self, width: int | None = None) -> tuple[Array, Array]:
        """(ids, distances), each (rows, width), as of `Tree.nearest`: behind the entries of a row
        -1 and infinity. width: so many entries of each; default: the k of `nearest`, else those of
        the longest row."""
        counts = np.diff(self.offsets)
        width = self._width if width is None else width
        if width is None:
            width = int(counts.max(initial=0))
        place = np.arange(len(self)) - np.repeat(self.offsets[:-1], counts)
        fits = place < integer("width", width)
        ids = np.full((len(counts), width), -1, np.int64)
        distances = np.full(ids.shape, np.inf, self.distances.dtype)
        at = self.rows[fits], place[fits]
        ids[at], distances[at] = self.ids[fits], self.distances[fits]
        return ids, distances


def neighbors(points: Any, cutoff: Any, *, cell: Any = None, pbc: Any = None, numbers: Any = None,
              half: bool = False, self_interaction: bool = False, sorted: bool = False,
              n_threads: int = 1) -> Neighbors:
    """The points nearer than a cutoff to each point.

    Parameters
    ----------
    points : array_like, (n, 3) or (n, 2); or ase.Atoms, with their cell and pbc
    cutoff, numbers, half, self_interaction, sorted, n_threads
        As in `neighbor_list`.
    cell : array_like, optional
        As many lengths, or vectors in rows, as a point has numbers. Any image that is near is
        found, however small the cell.
    pbc : bool or sequence of bool, optional
        Which vectors repeat (default: all, with a cell).

    Returns
    -------
    Neighbors

    Examples
    --------
    >>> import nearfield
    >>> found = nearfield.neighbors([[0.0, 0.0], [0.9, 0.0]], 0.3, cell=[1, 1])
    >>> found.pairs().tolist(), found.distances.round(3).tolist(), found.shifts.tolist()
    ([[0, 1], [1, 0]], [0.1, 0.1], [[-1, 0], [1, 0]])
    """
    return _search(points, None, cutoff, cell, pbc, numbers=numbers, half=half,
                   own=self_interaction, sorted=sorted, threads=threads_of(n_threads))


def query(points: Any, at: Any, cutoff: float, *, cell: Any = None, pbc: Any = None,
          sorted: bool = False) -> Neighbors:
    """The points nearer than a cutoff to each of other points.

    Parameters
    ----------
    points : array_like, (n, 3) or (n, 2); or ase.Atoms, with their cell and pbc
    at : array_like, (m, 3) or (m, 2)
        Each has a row. A point that lies there is found, too.
    cutoff : float
    cell, pbc, sorted
        As in `neighbors`.

    Returns
    -------
    Neighbors

    Examples
    --------
    >>> import nearfield
    >>> nearfield.query([[0.0, 0, 0], [1, 0, 0]], [[0.9, 0, 0]], 0.2).ids
    array([1])
    """
    return _search(points, at, cutoff, cell, pbc, sorted=sorted)


def nearest(points: Any, k: int, at: Any = None, *, reach: float = np.inf, cell: Any = None,
            pbc: Any = None) -> Neighbors:
    """The k points nearest to each point, or to each of other points, nearest first.

    Parameters
    ----------
    points : array_like, (n, 3) or (n, 2); or ase.Atoms, with their cell and pbc
    k : int
        In a cell each image counts.
    at : array_like, (m, 3) or (m, 2), optional
        Each has a row. None: those of the points, in which they themselves are not.
    reach : float
        Points that far away, or further, are not found: such rows are shorter.
    cell, pbc
        As in `neighbors`.

    Returns
    -------
    Neighbors
        `padded` has them as arrays (m, k).

    Examples
    --------
    >>> import nearfield
    >>> found = nearfield.nearest([[0.1, 0, 0], [0.5, 0, 0], [0.85, 0, 0]], 1, cell=[1, 1, 1])
    >>> found.ids, found.distances.round(3)
    (array([2, 2, 0]), array([0.25, 0.35, 0.25]))
    """
    if integer("k", k) < 1:
        raise ValueError("k: expected 1 or more, not %d" % k)
    return _search(points, at, reach, cell, pbc, nearest=int(k))


def _search(points: Any, at: Any, cutoff: Any, cell: Any, pbc: Any, **asked: Any) -> Neighbors:
    if is_atoms(points):
        cell = points.cell if cell is None else cell
        pbc = points.pbc if pbc is None else pbc
        if isinstance(cutoff, dict) and asked.get("numbers") is None:
            asked["numbers"] = points.numbers
        points = points.positions
    at = at.positions if is_atoms(at) else at
    dim = 2 if np.ndim(points) == 2 and np.shape(points)[1] == 2 else 3
    points, at = _in_space("points", points, dim), _in_space("at", at, dim)
    pbc = np.broadcast_to(cell is not None if pbc is None else pbc, dim)
    pbc = np.append(pbc, [False] * (3 - dim))
    if cell is None and pbc.any():
        raise ValueError("cell: periodic axes need one")
    vectors = np.eye(3)
    if cell is not None:
        given = np.asarray(cell, float)
        if given.shape not in ((dim,), (dim, dim)):
            raise ValueError("cell: expected %d lengths, or %d vectors in rows, not an array of "
                             "shape %s" % (dim, dim, given.shape))
        vectors[:dim, :dim] = np.diag(given) if given.ndim == 1 else given
    offsets, ids, d, D, S = find("RjdDS", points, vectors, pbc, cutoff, at=at, offsets=True,
                                 **asked)
    return Neighbors(offsets, ids, d, D[:, :dim], S[:, :dim], len(points),
                     asked.get("nearest"))


def is_atoms(values: Any) -> bool:
    """ase.Atoms, or what has the same attributes."""
    return all(hasattr(values, name) for name in ("positions", "cell", "pbc"))


def _in_space(name: str, points: Any, dim: int) -> Any:
    """Points of two numbers, with a third."""
    if points is None or dim == 3:
        return points
    real = dtype_of(points)
    points = host_array(name, points, real)
    if points.ndim != 2 or points.shape[1] != dim:
        raise ValueError("%s: expected an array of shape (m, %d), not %s" % (
            name, dim, points.shape))
    return np.column_stack([points, np.zeros(len(points), real)])


__all__ = ["Neighbors", "neighbors", "query", "nearest"]
