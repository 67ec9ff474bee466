"""neighbor_list, and the names by which ASE, matscipy and vesin know it.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import os
from typing import Any, Literal, Sequence, overload

import numpy as np
import numpy.typing as npt

from . import _binding
from ._arrays import (Array, address_of, count_of, cut, dtype_of, flags_of, host_array, refuse,
                      refuse_masked, refuse_not_finite, set_parallel, threads_of, tight)
from ._memory import memory_limit
from ._binding import Error

_KEPT_BYTES = 64 << 20      # memory that a search keeps for the next one
_pools: dict[Any, list["_Search"]] = {np.float32: [], np.float64: []}

_SYMBOLS = """
X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br
Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er
Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md
No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og""".split()
_NUMBERS = {symbol: number for number, symbol in enumerate(_SYMBOLS)}
_WAYS = {0: "", 1: "cells", 2: "trees"}     # nearfield_search.by


@overload
def neighbor_list(quantities: Literal["i", "j", "S", "d", "D"], a: Any, cutoff: Any,
                  self_interaction: bool = ..., max_nbins: float = ..., *, half: bool = ...,
                  sorted: bool = ..., n_threads: int = ...) -> Array: ...
@overload
def neighbor_list(quantities: str, a: Any, cutoff: Any, self_interaction: bool = ...,
                  max_nbins: float = ..., *, half: bool = ..., sorted: bool = ...,
                  n_threads: int = ...) -> tuple[Array, ...]: ...


def neighbor_list(quantities: str, a: Any, cutoff: Any, self_interaction: bool = False,
                  max_nbins: float = 1e6, *, half: bool = False, sorted: bool = False,
                  n_threads: int = 1) -> Any:
    """Pairs of atoms that are nearer than a cutoff, as ``ase.neighborlist.neighbor_list``.

    Parameters
    ----------
    quantities : str
        Which arrays to return, in any order:

        - ``"i"``, ``"j"``: (m,) int64, the two atoms; ``i`` ascends
        - ``"S"``: (m, 3) int32, periods of the cell to add to atom j
        - ``"d"``, ``"D"``: (m,) and (m, 3), distance and vector from i to j, in the unit of the
          positions: ``D = positions[j] - positions[i] + S @ cell``
    a : ase.Atoms, tuple or list
        Atoms, or ``(positions, cell, pbc)``, or ``(positions, cell, pbc, numbers)``. positions:
        (n, 3); float32 stays float32, everything else is computed in float64. cell: 3 lengths, or
        3 vectors (3, 3), of any shape and handedness. pbc: one or three booleans. numbers: (n,)
        int, the kinds that a dict of cutoffs names.
    cutoff : float, dict or array_like
        - a number: pairs with d < cutoff, with as many images as there are
        - an array (n,): a radius for each atom, pairs with d < radius[i] + radius[j]
        - a dict ``{("H", "O"): 1.2, (8, 8): 3.0}``: by symbols or numbers of both, in either
          order; kinds that are not named are not listed
        - a dict ``{"H": 0.6, 8: 1.5}``: a radius for each kind
    self_interaction : bool
        Also list each atom as its own neighbour, at distance 0.
    max_nbins : float
        Accepted for ASE's callers, and not used.
    half : bool
        Each pair once, in the row of the lower index (an atom and its own image: with the shift
        whose first number other than 0 is positive).
    sorted : bool
        Within equal ``i`` ascending by ``j``, then by ``S``. Else in no particular order there.
    n_threads : int
        Threads that the search may use, 1 .. 256. The results are the same. (Cells use them; the
        trees of the notes do not.)

    Returns
    -------
    tuple of numpy.ndarray, or numpy.ndarray
        The arrays in the order of `quantities`; for a single quantity the array itself.

    Raises
    ------
    ValueError
        Positions of another shape, not finite, masked, or of a foreign byte order; cells whose
        periodic vectors are dependent; cutoffs that are negative, not finite, or whose square does
        not fit into the type of the positions; numbers that are no integers of 32 bits.
    MemoryError
        The pairs do not fit into the memory of this machine (of its container, or of ulimit).

    Notes
    -----
    The search is by cells. Where these would be slow it is over trees, which finds the same pairs
    in another order within a row: where the largest of the cutoffs is three times an ordinary one
    or more, and where atoms crowd in a small part of the room that all of them span (one far away
    is enough). `NeighborList.search` says which it was. At a cutoff of 0 there are no pairs.

    Examples
    --------
    >>> import numpy as np, nearfield
    >>> positions = np.array([[0.0, 0.0, 0.0], [0.9, 0.0, 0.0]])
    >>> i, j, S, d = nearfield.neighbor_list("ijSd", (positions, np.eye(3), True), 0.3)
    >>> i, j, S[:, 0].tolist(), d.round(3)
    (array([0, 1]), array([1, 0]), [-1, 1], array([0.1, 0.1]))
    """
    numbers = None
    if isinstance(a, tuple) or (isinstance(a, list) and len(a) in (3, 4) and np.ndim(a[0]) == 2):
        positions, cell, pbc = a[:3]
        if len(a) > 3:
            numbers = a[3]
    elif hasattr(a, "positions"):
        positions, cell, pbc = a.positions, a.cell, a.pbc
        if isinstance(cutoff, dict):
            numbers = a.numbers
    else:
        raise TypeError("expected ase.Atoms, or a tuple (positions, cell, pbc) or (positions, "
                        "cell, pbc, numbers), not %s" % type(a).__name__)
    return find(quantities, positions, cell, pbc, cutoff, numbers, self_interaction, half, sorted,
                threads_of(n_threads))


# vesin's name for it
ase_neighbor_list = neighbor_list


def primitive_neighbor_list(quantities: str, pbc: Any, cell: Any, positions: Any, cutoff: Any,
                            numbers: Any = None, self_interaction: bool = False,
                            use_scaled_positions: bool = False, max_nbins: float = 1e6) -> Any:
    """`neighbor_list` in the form of ``ase.neighborlist.primitive_neighbor_list``.

    Parameters
    ----------
    quantities, cutoff, self_interaction, max_nbins
        As in `neighbor_list`.
    pbc : bool or sequence of 3 bool
    cell : array_like, (3,) or (3, 3)
    positions : array_like, (n, 3)
    numbers : array_like of int, (n,), optional
    use_scaled_positions : bool
        The positions are in units of the cell vectors.

    Returns
    -------
    tuple of numpy.ndarray, or numpy.ndarray

    Examples
    --------
    >>> import nearfield
    >>> nearfield.primitive_neighbor_list("d", True, [1, 1, 1], [[0, 0, 0]], 1.01)
    array([1., 1., 1., 1., 1., 1.])
    """
    if use_scaled_positions:
        positions = np.asarray(positions, float) @ _cell_vectors(cell)
    return find(quantities, positions, cell, pbc, cutoff, numbers, self_interaction, False, False)


def neighbour_list(quantities: str, atoms: Any = None, cutoff: Any = None, positions: Any = None,
                   cell: Any = None, pbc: Any = None, numbers: Any = None,
                   cell_origin: Any = None) -> Any:
    """`neighbor_list` in the form of ``matscipy.neighbours.neighbour_list``.

    Parameters
    ----------
    quantities, cutoff
        As in `neighbor_list`.
    atoms : ase.Atoms, optional
        Else `positions`; `cell` and `pbc` default to no periodic axis.
    positions, cell, pbc, numbers
        As in `primitive_neighbor_list`.
    cell_origin : array_like, optional
        Accepted, and not used: pairs do not depend on it.

    Returns
    -------
    tuple of numpy.ndarray, or numpy.ndarray

    Examples
    --------
    >>> import nearfield
    >>> nearfield.neighbour_list("ij", cutoff=1.5, positions=[[0, 0, 0], [1, 0, 0], [3, 0, 0]])
    (array([0, 1]), array([1, 0]))
    """
    if atoms is not None:
        positions = atoms.positions if positions is None else positions
        cell = atoms.cell if cell is None else cell
        pbc = atoms.pbc if pbc is None else pbc
        numbers = atoms.numbers if numbers is None else numbers
    pbc = False if pbc is None else pbc
    cell = np.eye(3) if cell is None else cell
    return find(quantities, positions, cell, pbc, cutoff, numbers, False, False, False)


class NeighborList:
    """`neighbor_list` in the form of ``vesin.NeighborList``.

    Parameters
    ----------
    cutoff : float
    full_list : bool
        Each pair twice, i-j and j-i; else once.
    sorted : bool
        By i, then j, then S.
    algorithm : {"auto", "cell_list", "trees", "brute_force"}
        What to search by. The pairs are the same; brute_force is accepted, and means auto.
    skin : float
        Pairs within cutoff + skin are kept, and serve until an atom has moved by more than half
        the skin, or the number of atoms, the box or the periodic axes have changed. What is
        returned is the same as without, but for the order of j.
    n_threads : int
        Threads that a search may use, 1 .. 256; 0: OMP_NUM_THREADS, or as many as there are. The
        results are the same.

    Attributes
    ----------
    search : str
        What the last search went by, "cells" or "trees" (see `neighbor_list`).
    searches : int
        How often pairs were searched for.

    Examples
    --------
    >>> import nearfield
    >>> pairs = nearfield.NeighborList(cutoff=1.5, full_list=False)
    >>> i, j, d = pairs.compute([[0, 0, 0], [1, 0, 0]], [9, 9, 9], False, "ijd")
    >>> i, j, d
    (array([0]), array([1]), array([1.]))
    """

    cutoff: float
    full_list: bool
    sorted: bool
    algorithm: str
    skin: float
    n_threads: int
    search: str
    searches: int

    def __init__(self, cutoff: float, full_list: bool, sorted: bool = False,
                 algorithm: str = "auto", skin: float = 0.0, n_threads: int = 1) -> None:
        if algorithm not in _ALGORITHMS:
            raise ValueError("algorithm: expected one of %s, not %r" % (
                ", ".join(_ALGORITHMS), algorithm))
        if not 0 <= skin < np.inf:
            raise ValueError("skin must be finite and not negative, not %s" % skin)
        self.cutoff, self.full_list, self.sorted = float(cutoff), bool(full_list), bool(sorted)
        self.algorithm, self.skin = algorithm, float(skin)
        self.n_threads = (_all_threads() if type(n_threads) is int and n_threads == 0
                          else threads_of(n_threads))
        self.search, self.searches = "", 0
        self._last: Any = None

    def __repr__(self) -> str:
        return ("nearfield.NeighborList(cutoff=%r, full_list=%r, sorted=%r, algorithm=%r, skin=%r, "
                "n_threads=%r)" % (self.cutoff, self.full_list, self.sorted, self.algorithm,
                                   self.skin, self.n_threads))

    def compute(self, points: Any, box: Any, periodic: Any, quantities: str = "ij",
                copy: bool = True) -> list[Array]:
        """The pairs among `points`.

        Parameters
        ----------
        points : array_like, (n, 3)
        box : array_like, (3,) or (3, 3)
        periodic : bool or sequence of 3 bool
        quantities : str
            As in `neighbor_list`; ``"P"``: (m, 2), i and j side by side.
        copy : bool
            Accepted: results are arrays of their own.

        Returns
        -------
        list of numpy.ndarray
        """
        asked = "".join(dict.fromkeys(quantities.replace("P", "ij") or "ij"))
        if self.skin > 0:
            arrays = self._kept_pairs(asked, points, box, periodic)
        else:
            found = self._search(asked, points, box, periodic, self.cutoff)
            arrays = dict(zip(asked, found if isinstance(found, tuple) else (found,)))
        return [np.stack([arrays["i"], arrays["j"]], axis=1) if q == "P" else arrays[q]
                for q in quantities]

    def _search(self, quantities: str, points: Any, box: Any, periodic: Any, cutoff: float) -> Any:
        ways: list[str] = []
        found = find(quantities, points, box, periodic, cutoff, None, False, not self.full_list,
                     self.sorted, self.n_threads, ways, way=_ALGORITHMS[self.algorithm])
        self.search = ways[0]
        self.searches += 1
        return found

    def _kept_pairs(self, asked: str, points: Any, box: Any, periodic: Any) -> dict[str, Array]:
        """Those of the list with the skin that are within the cutoff now."""
        real = dtype_of(points).type
        x, n, stride = atom_rows(points, real)
        cell, flags = _cell_vectors(box), np.broadcast_to(flags_of("pbc", periodic), 3)
        if not self._serves(x, cell, flags):
            refuse_not_finite("positions", x)
            pairs = self._search("ijS", x, cell, flags, self.cutoff + self.skin)
            self._last = x.copy(), cell.copy(), flags.copy(), self.cutoff, self.skin, pairs
        i, j, shift = self._last[-1]
        search = take(real)
        try:
            _set_box(search, cell, flags)
            made = _empty("ijSdD", len(i), x.dtype)
            count = search.lib.nearfield_again(
                address_of(x), stride or 3 * x.itemsize, search.box_address, self.cutoff,
                address_of(i), address_of(j), address_of(shift), len(i),
                *(address_of(a) if q in "ijS" + asked else None for q, a in zip("ijSdD", made)))
        finally:
            give(search)
        return {q: cut(a, count) for q, a in zip("ijSdD", made)}

    def _serves(self, x: Array, cell: Array, flags: Array) -> bool:
        """Whether no pair within the cutoff can be missing from the last list."""
        if self._last is None:
            return False
        old, old_cell, old_flags, *reach, _ = self._last
        if (old.shape != x.shape or old.dtype != x.dtype or reach != [self.cutoff, self.skin]
                or (old_cell != cell).any() or (old_flags != flags).any()):
            return False
        moved = x.astype(np.float64) - old
        longest = np.einsum("na,na->n", moved, moved).max(initial=0)
        return bool(longest <= (self.skin / 2 * (1 - 1e-6)) ** 2)


_ALGORITHMS = {"auto": 0, "cell_list": 1, "trees": 2, "brute_force": 0}


def _all_threads() -> int:
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    there = int(wanted) if wanted.isdigit() and int(wanted) > 0 else os.cpu_count() or 1
    return min(there, 256)


# ---- one search ----------------------------------------------------------------------------------


class _Search:
    """A nearfield_search of the library, with a box of its own."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.lib = lib = _binding.library(self.dtype, False)
        self.address = lib.nearfield_search_new()
        if not self.address:
            raise MemoryError("nearfield: no memory for a search")
        self.asks = lib.nearfield_search.from_address(self.address)
        self.box = np.zeros(1, np.dtype([("cell", dtype, (3, 3)), ("periodic", np.int32, 3)],
                                        align=True))
        self.cell, self.periodic = self.box["cell"][0], self.box["periodic"][0]
        self.starts, self.query_starts = np.zeros((2, 2), np.int32)
        self.room: int | None = None        # bytes, where a test sets a limit of its own
        self.box_address, self.starts_address = self.box.ctypes.data, self.starts.ctypes.data

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self.lib.nearfield_search_free(self.address)


def take(dtype: Any) -> _Search:
    """A search that nobody uses now. (Lists' pop and append are safe between threads.)"""
    try:
        return _pools[dtype].pop()
    except IndexError:
        return _Search(dtype)


def give(search: _Search) -> None:
    search.lib.nearfield_search_end(search.address, _KEPT_BYTES)
    pool = _pools[search.dtype.type]
    if len(pool) < 16:
        pool.append(search)


def find(quantities: str, positions: Any, cell: Any, pbc: Any, cutoff: Any, numbers: Any = None,
         own: bool = False, half: bool = False, sorted: bool = False, threads: int = 1,
         ways: list[str] | None = None, at: Any = None, nearest: int = 0, way: int = 0,
         offsets: bool = False) -> Any:
    """All forms above: one system in one box. ways: is told what the search went by. at: rows of
    these points. nearest: rows of so many, of any cutoff. offsets: "R" is where rows begin."""
    if not isinstance(quantities, str) or quantities.strip("ijSdDR" if offsets else "ijSdD"):
        raise ValueError("quantities: expected a string of i, j, d, D and S, not %r"
                         % (quantities,))
    real = dtype_of(positions).type
    positions, n, stride = atom_rows(positions, real)
    search = take(real)
    try:
        _set_box(search, cell, pbc)
        search.starts[1] = n
        asks = search.asks
        asks.boxes, asks.starts, asks.systems = search.box_address, search.starts_address, 1
        asks.pos, asks.stride = positions.__array_interface__["data"][0], stride
        asks.half, asks.sorted, asks.self = half, sorted, own
        plain(asks)
        if threads > 1:
            set_parallel(search.lib, asks.parallel, threads)
        kept = _set_cutoff(search, 1.0 if nearest and cutoff == np.inf else cutoff, numbers, n)
        if nearest and cutoff == np.inf:        # however far
            asks.cutoff = np.inf
        rows = _set_rows(search, at, nearest, way)
        asks.by = 0
        if asks.cutoff == 0:
            refuse_not_finite("positions", positions)
            result = _empty(quantities, 0, real, len(rows) if at is not None else n)
        else:
            run(search, positions)
            result = _answer(search, quantities, len(rows) if at is not None else n)
        if ways is not None:
            ways.append(_WAYS[asks.by])
        del kept
    finally:
        if threads > 1:
            set_parallel(search.lib, search.asks.parallel, 1)
        give(search)
    return result[0] if len(result) == 1 else result


def _set_rows(search: _Search, at: Any, nearest: int, way: int) -> Any:
    """Which rows, and how many entries of each; returns what must live as long as the search."""
    search.asks.nearest, search.asks.way = nearest, way
    if at is None:
        return None
    at = tight(host_array("at", at, search.dtype))
    if at.shape == (0,):
        at = at.reshape(0, 3)
    if at.ndim != 2 or at.shape[1] != 3:
        raise ValueError("at: expected an array of shape (m, 3), not %s" % (at.shape,))
    refuse_not_finite("at", at)
    search.query_starts[1] = count_of(len(at))
    search.asks.queries = address_of(at)
    search.asks.query_starts = address_of(search.query_starts)
    return at


def plain(asks: Any) -> None:
    """The rows of all points, as long as they are, by the search that is chosen."""
    asks.nearest = asks.most = asks.lowest = asks.way = 0
    asks.queries = asks.query_starts = None


def _set_box(search: _Search, cell: Any, pbc: Any) -> None:
    refuse_masked("cell", cell)
    cell = np.asarray(cell)
    if cell.shape == (3, 3):
        search.cell[...] = cell
    else:
        search.cell[...] = _cell_vectors(cell)
    if isinstance(pbc, str) or np.shape(pbc) not in ((), (3,)):
        raise ValueError("pbc: expected True or False, or three of them, not %r" % (pbc,))
    search.periodic[...] = flags_of("pbc", pbc)


def run(search: _Search, positions: Array) -> None:
    """Finds the pairs; what was refused is a ValueError that names its row."""
    search.asks.limit = memory_limit() + search.asks.held if search.room is None else search.room
    result = search.lib.nearfield_search_run(search.address)
    if result:
        _refuse_result(search, result, positions)


def _refuse_result(search: _Search, result: int, positions: Array) -> None:
    text = _binding.result_text(search.lib, "nlist", result)
    bad = search.asks.bad_id
    if text.startswith("NLIST_OUT_OF_MEMORY"):
        raise MemoryError("the pairs within this cutoff do not fit into the memory of this machine")
    if text.startswith("NLIST_NOT_FINITE") and 0 <= bad < len(positions):
        raise ValueError("positions: row %d is %s, not finite" % (bad, positions[bad].tolist()))
    if text.startswith("NLIST_BAD_BOX"):
        raise ValueError("cell: the vectors of periodic axes must be finite and independent, and "
                         "no atom 2^28 periods away (%s)" % _binding.python_names(text))
    if text.startswith("NLIST_TOO_MANY_IMAGES"):
        raise ValueError("the cutoff reaches 2^31 - 1024 images of the cell or more (take a "
                         "smaller one), an atom is 2^28 periods away (wrap the positions), or the "
                         "cell is so skew that images are numbered beyond 2^28 (take shorter "
                         "vectors of the same lattice)")
    if text.startswith("NLIST_BAD_RADIUS"):
        raise ValueError("cutoff: the square of the largest one does not fit into %s"
                         % search.dtype)
    raise ValueError("nlist.h: %s%s" % (
        _binding.python_names(text), " [system %d]" % bad if bad >= 0 else ""))


def _empty(quantities: str, m: int, real: Any, rows: int = 0) -> tuple[Array, ...]:
    types = {"i": np.int64, "j": np.int64, "S": np.int32, "d": real, "D": real}
    return tuple(np.zeros(rows + 1, np.int64) if q == "R" else
                 np.empty((m, 3) if q in "SD" else m, types[q]) for q in quantities)


def _answer(search: _Search, quantities: str, rows: int = 0) -> tuple[Array, ...]:
    """New arrays of what was found."""
    m = search.asks.count
    bytes = m * 8 * sum(3 if q in "SD" else 1 for q in quantities if q != "R")
    if search.asks.held + bytes > search.asks.limit:
        raise MemoryError("%d pairs do not fit into the memory of this machine" % m)
    arrays = _empty(quantities, m, search.dtype, rows)
    at = {q: array.__array_interface__["data"][0] for q, array in zip(quantities, arrays)}
    search.lib.nearfield_search_copy(search.address, at.get("i"), at.get("j"), at.get("S"),
                                     at.get("d"), at.get("D"))
    if "R" in at:
        search.lib.nearfield_search_rows(search.address, at["R"])
    for k, q in enumerate(quantities):
        if k < quantities.rindex(q):    # asked for again: the last one was filled
            arrays[k][...] = arrays[quantities.rindex(q)]
    return arrays


# ---- what callers give ---------------------------------------------------------------------------


def atom_rows(positions: Any, real: Any) -> tuple[Array, int, int]:
    """(array, rows, bytes from one to the next): without a copy where rows are tightly packed."""
    array = host_array("positions", positions, real)
    if array.shape == (0,):
        array = array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError("positions: expected an array of shape (n, 3), not %s" % (array.shape,))
    apart, step = array.strides
    size = array.itemsize
    if step != size or apart < 3 * size or apart % size or not array.flags.aligned:
        array = tight(array)
        apart = 3 * size
    return array, count_of(len(array)), apart if len(array) > 1 else 0


def _cell_vectors(cell: Any) -> Array:
    cell = np.asarray(cell, float)
    if cell.shape not in ((3,), (3, 3)):
        raise ValueError("cell: expected 3 lengths, or 3 vectors of shape (3, 3), not %s (lengths "
                         "and angles: ase.geometry.cellpar_to_cell; atoms without a cell: "
                         "(0, 0, 0), and pbc False)" % (cell.shape,))
    return np.diag(cell) if cell.shape == (3,) else cell


def _set_cutoff(search: _Search, cutoff: Any, numbers: Any, n: int) -> Any:
    """The fields on cutoffs; returns arrays that must live as long as the search runs."""
    asks = search.asks
    asks.radii = asks.between = asks.numbers = asks.laws_cutoff = None
    asks.laws = 0
    if isinstance(cutoff, dict):
        return _set_laws(search, cutoff, numbers, n)
    if isinstance(cutoff, (int, float)) or np.ndim(cutoff) == 0:
        try:
            asks.cutoff = cutoff
        except TypeError:
            raise TypeError("cutoff: expected a number, a radius for each atom, or a dict, not %r"
                            % (cutoff,)) from None
        check_cutoff(search.dtype, cutoff)
        return None
    return _set_radii(search, cutoff, n)


def _set_radii(search: _Search, cutoff: Any, n: int) -> Array:
    radii = tight(host_array("cutoff", cutoff, search.dtype))
    if radii.shape != (n,):
        raise ValueError("cutoff: expected one number, or one for each of the %d atoms, not an "
                         "array of shape %s" % (n, radii.shape))
    if n and not (radii.min() >= 0 and radii.max() < np.inf):
        refuse("cutoff", ~((radii >= 0) & (radii < np.inf)),
               "is not a radius: it must be finite, and not negative")
    search.asks.radii, search.asks.cutoff = radii.ctypes.data, radii.max(initial=0) > 0
    return radii


def check_cutoff(dtype: np.dtype[Any], cutoff: Any) -> None:
    """0, or a number whose square is one of this precision, too."""
    value, real = float(cutoff), np.finfo(dtype)
    if not 0 <= value < np.inf:
        raise ValueError("cutoff must be finite and not negative, not %s%s" % (
            cutoff, ": take one that is longer than all distances" if value == np.inf else ""))
    if value > 0 and not float(real.tiny) * 1.00001 <= value * value < float(real.max):
        raise ValueError("cutoff: the square of %s is too %s for %s positions: scale them%s" % (
            cutoff, "small" if value < 1 else "large", dtype,
            ", or pass float64" if dtype == np.float32 else ""))


def _set_laws(search: _Search, cutoff: dict[Any, float], numbers: Any, n: int) -> Any:
    if numbers is None:
        raise ValueError("cutoff: a dict needs the kinds of the atoms: pass ase.Atoms, or "
                         "(positions, cell, pbc, numbers)")
    of = tight(host_array("numbers", _numbers_of(numbers), np.int32))
    if of.shape != (n,):
        raise ValueError("numbers: expected one for each of the %d atoms, not an array of shape %s"
                         % (n, of.shape))
    laws = _laws(cutoff)
    between = np.array([pair for pair, _ in laws], np.int32).reshape(-1, 2)
    reaches = np.array([reach for _, reach in laws], search.dtype)
    if not (np.isfinite(reaches).all() and (reaches >= 0).all()):
        raise ValueError("cutoff: every cutoff must be finite, and not negative: %s" % (cutoff,))
    asks = search.asks
    asks.numbers, asks.between = of.ctypes.data, between.ctypes.data
    asks.laws_cutoff, asks.laws = reaches.ctypes.data, len(laws)
    asks.cutoff = reaches.max(initial=0)
    return of, between, reaches


def _laws(cutoff: dict[Any, float]) -> list[tuple[tuple[int, int], float]]:
    """Cutoffs by two numbers. Kinds by themselves have radii."""
    single = [key for key in cutoff if not isinstance(key, tuple)]
    if not single:
        return [((_number(a), _number(b)), float(reach)) for (a, b), reach in cutoff.items()]
    if len(single) < len(cutoff):
        raise ValueError("cutoff: a dict names pairs of kinds, or kinds, not both")
    return [((_number(a), _number(b)), float(cutoff[a]) + float(cutoff[b]))
            for k, a in enumerate(single) for b in single[k:]]


def _number(kind: Any) -> int:
    if not isinstance(kind, str):
        return int(host_array("numbers", kind, np.int32))
    if kind not in _NUMBERS:
        raise ValueError("cutoff: %r is no element" % kind)
    return _NUMBERS[kind]


def _numbers_of(numbers: Any) -> npt.ArrayLike:
    """Numbers as they are; symbols become numbers."""
    if isinstance(numbers, (list, tuple)) and any(isinstance(k, str) for k in numbers):
        return [_number(kind) for kind in numbers]
    array: Sequence[Any] = numbers
    return array


__all__ = ["neighbor_list", "ase_neighbor_list", "primitive_neighbor_list", "neighbour_list",
           "NeighborList", "Error"]
