"""Grid, Tree, List and NBody: an object each over ugrid.h, lbvh.h, nlist.h and nbody.h.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import (Array, address_of, box_corners, count_of, cut, fetch, flat_corners,
                      host_array, index_pairs, integer, is_on_gpu, number, refuse,
                      refuse_bad_queries, refuse_not_finite, refuse_two_lengths, set_field,
                      width_of)
from ._binding import OPTIONS, Error, declared_desc, raise_for
from ._object import Object, Saved, changing, searching

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import GridFields, ListFields, NBodyFields, TreeFields

# A contact that began, persists or ended: List.events.
EVENT = np.dtype([("i", np.int32), ("j", np.int32), ("entry", np.int64)])


# ---- Grid: ugrid.h -------------------------------------------------------------------------------


class Grid(Saved):
    """Particles of about one size, or one search radius (``ugrid.h``).

    Parameters
    ----------
    points : array_like, (n, 2) or (n, 3), optional
        Built at once; else by `build`.
    cell : float, optional
        Edge of a cell (default: chosen by ``radius``, the largest one to search with, a field; or
        about 2 particles in a cell. On the CPU, where a few particles lie far from all others, of
        these others, in an unbounded grid: ``grid.desc.unbounded`` says so).
    box : (lower, upper), optional
        Corners, each a number or one for each axis: the fields min and max (default: the points'
        own box; with `periodic` there is no default).
    periodic : bool or sequence of bool
        Axes along which the box repeats. Distances are to the nearest image.
    unbounded : bool
        No box: cells everywhere, hashed.
    radii : array_like, (n,), optional
        CPU: neighbours are nearer than radius + both radii.
    masks : array_like of uint32, (n,), optional
        CPU: neighbours share a bit.
    exclude : array_like of int32, (m, 2), optional
        CPU: pairs that are none.
    sets, sees : array_like, (n,) of 0 .. 31 and (32,) of uint32, optional
        CPU: rows of set s list particles of set t where ``sees[s]`` has bit t; both, or none. These
        five filter `neighbors`, `count_neighbors`, `count_pairs` and `pairs`, not `query`.
    stream : int or stream object, optional
        GPU: the stream to work on.
    n_threads : int
        CPU: threads that a call may use, 1 .. 256 (default: 1). The results are the same.
    **fields
        Further fields of ``ugrid_desc``: radius, method, placement, size, walk, cell_order, slots,
        split, buckets, max_cells, ...

    Raises
    ------
    Error
        A point is not finite, or a field is refused, with the text of ``ugrid.h``.
    ValueError
        An array has another shape.

    Examples
    --------
    >>> import numpy as np, nearfield
    >>> grid = nearfield.Grid([[0.05, 0.5], [0.95, 0.5], [0.5, 0.5]], cell=0.2, box=(0, 1),
    ...                       periodic=True)
    >>> offsets, ids = grid.neighbors(0.15)
    >>> offsets, ids
    (array([0, 1, 2, 2]), array([1, 0], dtype=int32))
    """

    _header = "ugrid"
    _own_fields = "radii", "masks", "exclude", "sets", "sees"
    _told = ("periodic",)

    def __init__(self, points: Any = None, cell: float | None = None, *, box: Any = None,
                 periodic: Any = None, unbounded: bool | None = None, radii: Any = None,
                 masks: Any = None, exclude: Any = None, sets: Any = None, sees: Any = None,
                 stream: Any = None, n_threads: int | None = None,
                 **fields: Unpack[GridFields]) -> None:
        super().__init__(stream, cell=cell, box=box, periodic=periodic, unbounded=unbounded,
                         radii=radii, masks=masks, exclude=exclude, sets=sets, sees=sees,
                         n_threads=n_threads, **fields)
        self._check_filters()
        if points is not None:
            self.build(points)

    def _check_filters(self) -> None:
        """What is wrong without knowing n."""
        fields = self._fields
        if ("sets" in fields) != ("sees" in fields):
            raise ValueError("sets and sees go together: give both")
        if "sees" in fields and np.shape(fields["sees"]) != (32,):
            raise ValueError("sees: expected 32 numbers, not an array of shape %s"
                             % (np.shape(fields["sees"]),))
        for name in ("masks", "sees"):
            if name in fields and not is_on_gpu(fields[name]):
                host_array(name, fields[name], np.uint32)
        if "exclude" in fields and not is_on_gpu(fields["exclude"]):
            index_pairs(fields["exclude"])
        if "radii" in fields and not is_on_gpu(fields["radii"]):
            radii = host_array("radii", fields["radii"], np.float64).reshape(-1)
            for bad, why in ((np.isnan(radii), "is nan"), (np.isinf(radii), "is infinite"),
                             (radii < 0, "is negative")):
                refuse("radii", bad, why)

    @changing
    def build(self, points: Any) -> Grid:
        """Put other points into the cells; memory is used again.

        Parameters
        ----------
        points : array_like, (n, 2) or (n, 3)

        Returns
        -------
        Grid
            This one.
        """
        dim = width_of(points, (2, 3))
        pos, n, stride = self._rows(points, dim)
        desc = self._new_desc(dim)
        if not self._device and not self._fields.keys() & _PLACE:
            _set_crowd(desc, pos)
        if self._device:
            fit = self._lib.ugrid_cuda_fit(ctypes.byref(desc), address_of(pos), stride, n,
                                           self._stream)
            raise_for(self._lib, "ugrid", fit, self._state)
        self._kept["pos"] = pos         # some methods read it again
        self._call("build", ctypes.byref(desc), address_of(pos), stride, n)
        self._set_filter()
        return self

    def _set_filter(self) -> None:
        """The keywords on pairs, now that n is known. A grid that cannot have them is empty, as
        after other refusals: it would list what it should not."""
        try:
            self._take_filter()
        except (TypeError, ValueError, Error):
            getattr(self._lib, "ugrid_cuda_free" if self._device else "ugrid_free")(
                ctypes.byref(self._struct))
            raise

    def _take_filter(self) -> None:
        names = self._fields.keys() & set(self._own_fields)
        if not names:
            return
        self._on_host(", ".join(sorted(names)))
        keep = self._state.filter
        self._set_array(keep, "radii", self.n)
        self._set_array(keep, "masks", self.n)
        self._set_array(keep, "sets", self.n)
        if "radii" in names:
            keep.largest = self._kept["radii"].max(initial=0)
        if "exclude" in names:
            start, partner = self._kept["exclude"] = excluded_rows(self._fields["exclude"], self.n)
            keep.exclude_start, keep.exclude = address_of(start), address_of(partner)
        if "sets" in names and self._kept["sets"].max(initial=0) > 31:
            raise ValueError("sets: expected numbers 0 .. 31")
        keep.sees[:] = (host_array("sees", self._fields["sees"], np.uint32).tolist()
                        if "sees" in names else [2**32 - 1] * 32)

    def save(self) -> bytes:
        """See `List.save`. Filters are not in the bytes, but their names are, behind those of
        ``ugrid_save``: `load` wants a grid that was made with the same."""
        names = sorted(self._fields.keys() & set(self._own_fields))
        return super().save() + (b"\nfilters " + " ".join(names).encode() if names else b"")

    def _load(self, data: bytes, dim: int, dtype: Any) -> None:
        told = re.search(rb"\nfilters ([a-z ]+)\Z", data)
        saved = set(told.group(1).decode().split()) if told else set()
        ours = self._fields.keys() & set(self._own_fields)
        if saved != ours:
            raise Error("what was saved has other keywords than this object: its filters are %s, "
                        "and here %s" % (" ".join(sorted(saved)) or "none",
                                         " ".join(sorted(ours)) or "none"))
        super()._load(data[:told.start()] if told else data, dim, dtype)
        self._set_filter()

    def _take(self, content: Any) -> None:
        super()._take(content)
        self._set_filter()

    def to_host(self) -> Grid:
        """GPU: a copy of this grid on the CPU, with the positions as they are now."""
        host: Grid = super().to_host()
        real = self._lib.dtype
        n, stride = self.n, self._state.stride or self._state.desc.dim * real.itemsize
        pos = host._kept["pos"] = np.zeros((n, stride // real.itemsize), real)
        size = max(n - 1, 0) * stride + (n > 0) * self._state.desc.dim * real.itemsize
        fetch(self._lib, pos.ctypes.data_as(ctypes.c_void_p), self._state.pos, size, self._stream)
        host._state.pos, host._state.stride = address_of(pos), stride
        return host

    @property
    def _row_count(self) -> int:
        """Particles that have rows; the others are ghosts (rows)."""
        return self.n if self._device else int(self._state.rows)

    @searching
    def neighbors(self, radius: float, half: bool = False) -> tuple[Array, Array]:
        """All neighbours of all particles; with `rows` of particles 0 .. rows - 1, which n stands
        for below.

        Parameters
        ----------
        radius : float
            In the unit of the points; a particle at the radius is within.
        half : bool
            Each pair in one of its two rows.

        Returns
        -------
        offsets : ndarray of int64, (n + 1,)
        ids : ndarray of int32
            Particle i has the neighbours ``ids[offsets[i]:offsets[i + 1]]``.
        """
        return self._list("neighbors", self._row_count, number("radius", radius), int(half))

    @searching
    def count_neighbors(self, radius: float, half: bool = False) -> Array:
        """How many neighbours each particle has: ndarray of int32, (n,), with `rows` (rows,)."""
        counts = self._empty(self._row_count if self._lib else 0, np.int32)
        self._call("count_neighbors", number("radius", radius), int(half), address_of(counts))
        return counts

    @searching
    def count_pairs(self, radius: float) -> int:
        """How many pairs there are, each counted once."""
        pairs = self._empty(1, np.int64)
        self._call("count_pairs", number("radius", radius), address_of(pairs))
        return int(pairs[0])

    @searching
    def pairs(self, radius: float) -> Array:
        """The pairs themselves, int32 (m, 2), each once, the lower id first; in no order."""
        self._on_host("pairs")
        radius = number("radius", radius)
        room, needed = self._guesses.get("pairs", 8 * self.n), ctypes.c_int64()
        while True:
            pairs = np.empty((room, 2), np.int32)
            result = self._lib.nearfield_pairs(ctypes.byref(self._struct), radius,
                                               address_of(pairs), room, ctypes.byref(needed))
            if needed.value <= room:
                raise_for(self._lib, "ugrid", result, self._state)
                self._guesses["pairs"] = needed.value + needed.value // 16
                return cut(pairs, needed.value)
            room = needed.value

    @searching
    def query(self, points: Any, radius: float) -> tuple[Array, Array]:
        """Particles within radius of any points: as `neighbors`, for points not in the grid.

        Parameters
        ----------
        points : array_like, (m, dim)
        radius : float

        Returns
        -------
        offsets : ndarray of int64, (m + 1,)
        ids : ndarray of int32
        """
        at, m, stride = self._rows(points, self._state.desc.dim)
        refuse_not_finite("points", at)
        return self._list("neighbors_at", m, address_of(at), stride, m, number("radius", radius))

    @property
    @searching
    def order(self) -> Array:
        """View, int32 (n,): the particles in the grid's own order, in which near ones are near in
        memory (methods sort and count)."""
        return self._look(self._state.order, self.n, np.int32)


# Fields with which the caller says where the cells are.
_PLACE = {"cell", "min", "max", "periodic", "unbounded", "buckets", "method", "placement", "size",
          "walk", "cell_order"}


def _set_crowd(desc: Any, pos: Array) -> None:
    """Cells for nearly all points, where a box around all of them has a thousand times the volume:
    by the middle of a sample, without 2 % on either side of each axis."""
    if len(pos) < 256:
        return
    sample = pos[::max(len(pos) // 1024, 1)].astype(float)
    if not np.isfinite(sample).all():
        return
    with np.errstate(all="ignore"):
        low, high = np.quantile(sample, [0.02, 0.98], axis=0)
        sides, whole = (high - low) / 0.96, pos.max(axis=0).astype(float) - pos.min(axis=0)
        sides = np.maximum(sides, 1e-3 * sides.max())
        if sides.min() > 0 and 1000 * np.prod(sides) < np.prod(np.maximum(whole, sides)) < np.inf:
            desc.cell = (2 * np.prod(sides) / len(pos)) ** (1 / len(sides))
            desc.unbounded = 1


# ---- Tree: lbvh.h --------------------------------------------------------------------------------


# Numbers of an element, in two and in three dimensions.
_WIDTHS = {"boxes": (4, 6), "points": (2, 3), "spheres": (3, 4), "triangles": (6, 9)}


_QUERIES = "boxes", "points", "spheres"


class Tree(Saved):
    """Elements of any sizes (``lbvh.h``).

    Parameters
    ----------
    elements : array_like, optional
        Built at once; else by `build`.
    kind : {"boxes", "points", "spheres", "triangles"}
        boxes: (n, 2 * dim) or (n, 2, dim), lower and upper corner; points: (n, dim); spheres:
        (n, dim + 1), centre and radius; triangles: (n, 3 * dim) or (n, 3, dim), or with `indices`
        the vertices (v, dim).
    indices : array_like of int32, (n, 3), optional
    masks : array_like of uint32, (n,), optional
        Elements meet where their masks share a bit.
    stream : int or stream object, optional
        GPU: the stream to work on.
    n_threads : int
        CPU: threads that a call may use, 1 .. 256 (default: 1). The results are the same.
    **fields
        Further fields of ``lbvh_desc``: radius, bits, builder, min, max, ...

    Examples
    --------
    >>> import nearfield
    >>> tree = nearfield.Tree([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]], "points")
    >>> tree.nearest([[4.0, 0.0]], k=2)
    (array([[2, 1]], dtype=int32), array([[1., 9.]]))
    """

    _header = "lbvh"
    _copied = "data", "indices"
    _wide: _Wide | None = None

    def __init__(self, elements: Any = None, kind: str = "boxes", *, indices: Any = None,
                 masks: Any = None, stream: Any = None, n_threads: int | None = None,
                 **fields: Unpack[TreeFields]) -> None:
        super().__init__(stream, kind=kind, indices=indices, masks=masks, n_threads=n_threads,
                         **fields)
        if kind not in _WIDTHS:
            raise ValueError("kind must be one of %s" % " ".join(_WIDTHS))
        if indices is not None and kind != "triangles":
            raise ValueError("indices: those of triangles, and kind is %r" % kind)
        if elements is not None:
            self.build(elements)

    def _elements(self, elements: Any) -> tuple[Any, int, int, int]:
        """(array, rows, stride, dim) of elements, as their kind has them."""
        kind = self._fields["kind"]
        widths, corners = _WIDTHS[kind], {"boxes": 2, "triangles": 3}.get(kind, 0)
        if self._fields.get("indices") is not None:
            widths, corners = (2, 3), 0
        if not is_on_gpu(elements) and np.ndim(elements) == 3:
            elements = flat_corners(np.asarray(elements), corners)
        width = width_of(elements, widths, kind)
        return self._rows(elements, width) + (2 + widths.index(width),)

    @changing
    def build(self, elements: Any) -> Tree:
        """Build the tree over other elements; memory is used again. Returns this tree."""
        data, n, stride, dim = self._elements(elements)
        desc = self._new_desc(dim)
        if self._fields.get("indices") is not None:
            desc.vertices, n = n, len(self._fields["indices"])
        self._set_array(desc, "masks", n)
        self._set_array(desc, "indices", n, 3)  # last: the tree that there is reads the old ones
        self._kept["data"], self._wide = (data, stride), None
        self._call("build", ctypes.byref(desc), address_of(data), stride, n)
        return self

    @changing
    def refit(self, elements: Any) -> Tree:
        """The same elements after a small motion: the hierarchy stays, the boxes follow. Faster
        than a build. Returns this tree."""
        self._built()
        data, n, stride, dim = self._elements(elements)
        built = self._state.desc
        if (built.vertices if built.indices else self.n) != n or built.dim != dim:
            raise ValueError("refit needs as many elements as the build had")
        self._call("refit", address_of(data), stride)
        self._kept["data"], self._wide = (data, stride), None
        return self

    def _load(self, data: bytes, dim: int, dtype: Any) -> None:
        """A loaded tree is one of boxes; its elements are not in the bytes, so it has no rays and
        no closest points (a pickled tree has)."""
        super()._load(data, dim, dtype)
        self._fields.update(kind="boxes", indices=None, masks=None)
        self._kept, self._wide = {}, None

    def _content(self) -> Any:
        desc = self._state.desc
        return super()._content(), (desc.kind, desc.radius, desc.vertices)

    def _take(self, content: Any) -> None:
        saved, (kind, radius, vertices) = content
        super()._take(saved)
        desc, self._wide = self._state.desc, None
        desc.kind, desc.radius, desc.vertices = kind, radius, vertices
        if "indices" in self._kept:
            desc.indices = address_of(self._kept["indices"])

    @searching
    def closest(self, points: Any, reach: float = np.inf) -> tuple[Array, Array, Array]:
        """The point of the mesh that is closest to each point. Trees of triangles, 3D, on the CPU.

        Parameters
        ----------
        points : array_like, (m, 3)
        reach : float
            Triangles further away are not found.

        Returns
        -------
        ids : ndarray of int32, (m,)
            The triangle; -1: none is within reach.
        closest : ndarray, (m, 3)
            0 where there is none.
        distances : ndarray, (m,)
            Infinity where there is none.
        """
        wide = self._mesh("closest")
        at, m, stride = self._rows(points, 3)
        refuse_not_finite("points", at)
        real = self._lib.dtype
        found = np.empty(m, np.dtype([("point", real, 3), ("distance2", real), ("id", np.int32),
                                      ("feature", np.int32)], align=True))
        raise_for(self._lib, "lbvh", self._lib.lbvh_closest_points(
            ctypes.byref(wide._struct), address_of(at), stride, m, number("reach", reach),
            address_of(found)),
            self._state)
        far = np.where(found["id"] < 0, real.type(np.inf), np.sqrt(found["distance2"]))
        return found["id"].copy(), found["point"].copy(), far

    @searching
    def hits(self, origins: Any, directions: Any, t_max: float = np.inf) -> Array:
        """Whether each ray meets any triangle, bool (m,): for shadows and lines of sight, faster
        than `rays`. Parameters as there."""
        wide = self._mesh("hits")
        rays, m = self._ray_rows(origins, directions, t_max)
        ask = self._lib.lbvh_rays(data=address_of(rays), n=m, t_max=t_max)
        if t_max == 0:
            ends = np.zeros(m, self._lib.dtype)     # a t_max of 0 is infinity to the header
            ask.t_ends = address_of(ends)
        hit = np.empty(m, np.uint8)
        raise_for(self._lib, "lbvh", self._lib.lbvh_any_hits(
            ctypes.byref(wide._struct), ctypes.byref(ask), None, None, address_of(hit)),
            self._state)
        return hit.astype(bool)

    def _ray_rows(self, origins: Any, directions: Any, t_max: float) -> tuple[Array, int]:
        """(m, 6): origins and directions side by side."""
        from_, m, _ = self._rows(origins, 3)
        along, m2, _ = self._rows(directions, 3)
        if m != m2:
            raise ValueError("%d origins, but %d directions" % (m, m2))
        refuse_not_finite("origins", from_)
        refuse_not_finite("directions", along)
        if not number("t_max", t_max) >= 0:
            raise ValueError("t_max must not be negative or NaN, but is %s" % t_max)
        return np.hstack([from_, along]), m

    def _mesh(self, what: str) -> _Wide:
        """The wide tree over the triangles; kept until the next build."""
        self._on_host(what)
        if not self._lib or self._fields["kind"] != "triangles" or self._state.desc.dim != 3:
            raise Error("%s needs a tree of triangles in 3D" % what)
        if self._wide is None:
            self._wide = _Wide(self, *self._kept["data"])
        return self._wide

    @searching
    def count_pairs(self) -> int:
        """How many pairs of boxes overlap, each counted once."""
        pairs = self._empty(1, np.int64)
        self._call("count_pairs", address_of(pairs))
        return int(pairs[0])

    @searching
    def pairs(self) -> Array:
        """The pairs of elements whose boxes overlap: ndarray of int32, (m, 2)."""
        m = self.count_pairs()
        self.check()
        pairs, needed = self._empty((m, 2), np.int32), self._empty(1, np.int64)
        self._call("pairs", address_of(pairs), m, address_of(needed))
        return pairs

    @searching
    def overlaps(self, queries: Any = None, kind: str = "boxes", radius: float = 0,
                 half: bool = False) -> tuple[Array, Array]:
        """For each query the elements whose boxes it overlaps.

        Parameters
        ----------
        queries : array_like, optional
            None: the tree's own elements against the others.
        kind : {"boxes", "points", "spheres"}
            Of the queries; points reach `radius` far.
        radius : float
        half : bool
            Own elements: each pair in one of its two rows.

        Returns
        -------
        offsets : ndarray of int64, (m + 1,)
        ids : ndarray of int32
        """
        self._built()
        if kind not in _QUERIES:
            raise ValueError("kind=%r: expected one of %s" % (kind, " ".join(_QUERIES)))
        ask, rows = self._lib.lbvh_queries(), self.n
        set_field(ask, "lbvh", "kind", kind)
        ask.radius, ask.flags = number("radius", radius), int(half)
        if queries is not None:
            corners = 2 if kind == "boxes" else 1
            data, rows, stride = self._rows(queries,
                                            corners * self._state.desc.dim + (kind == "spheres"))
            refuse_bad_queries(data, kind)
            ask.data, ask.stride, ask.n = address_of(data), stride, rows
            if rows == 0 and self._device:      # such arrays have no address
                return self._empty(0, np.int64), self._empty(0, np.int32)
        return self._list("overlaps", rows, ctypes.byref(ask))

    @searching
    def query(self, points: Any, radius: float) -> tuple[Array, Array]:
        """(offsets, ids): the elements whose boxes are within radius of each point."""
        return self.overlaps(points, "points", radius)

    @searching
    def nearest(self, points: Any, k: int = 1, reach: float = np.inf) -> tuple[Array, Array]:
        """The k elements nearest to each point, nearest first.

        Parameters
        ----------
        points : array_like, (m, dim)
        k : int
        reach : float
            Elements further away than this are not found.

        Returns
        -------
        ids : ndarray of int32, (m, k)
            -1 where there are fewer than k within reach.
        distances2 : ndarray, (m, k)
            Squares of the distances to their boxes; infinity where there is none.
        """
        self._built()
        if integer("k", k) < 0:
            raise ValueError("k: expected 1 or more, not %d" % k)
        at, m, stride = self._rows(points, self._state.desc.dim)
        refuse_not_finite("points", at)
        ids, distances2 = self._empty((m, k), np.int32), self._empty((m, k), self._lib.dtype)
        found = self._empty(m, np.int32)
        out = address_of(ids), address_of(distances2), address_of(found)
        self._call("nearest" if self._device else "nearest_rows", address_of(at), stride, m, k,
                   number("reach", reach), 0, *out)
        return ids, distances2

    @searching
    def rays(self, origins: Any, directions: Any, t_max: float = np.inf) -> tuple[Array, Array]:
        """The first triangle that each ray meets, from either side. 3D, on the CPU.

        Parameters
        ----------
        origins, directions : array_like, (m, 3)
        t_max : float

        Returns
        -------
        ids : ndarray of int32, (m,)
            -1: none.
        t : ndarray, (m,)
            Where, in lengths of the direction; none: t_max.
        """
        self._on_host("rays")
        if not self._lib or self._fields["kind"] != "triangles" or self._state.desc.dim != 3:
            raise Error("rays needs a tree of triangles in 3D")
        both, m = self._ray_rows(origins, directions, t_max)
        from_, along = np.ascontiguousarray(both[:, :3]), np.ascontiguousarray(both[:, 3:])
        ids, t = np.empty(m, np.int32), np.empty(m, self._lib.dtype)
        data, stride = self._kept["data"]
        stride = stride or data.shape[1] * data.itemsize
        raise_for(self._lib, "lbvh", self._lib.nearfield_rays(
            ctypes.byref(self._struct), address_of(data), stride, address_of(from_),
            address_of(along), m, t_max, address_of(ids), address_of(t)), self._state)
        return ids, t


class _Wide(Object):
    """A wide tree with copied elements (``more/lbvh_wide.h``), of a tree that was built."""

    _header = "lbvh_wide"

    def __init__(self, tree: Tree, data: Any, stride: int) -> None:
        super().__init__(n_threads=tree._threads, copy=1)
        self._settle(tree._lib.dtype, False)
        raise_for(self._lib, "lbvh", self._lib.lbvh_wide_build(
            ctypes.byref(self._struct), ctypes.byref(self._new_desc(0)),
            ctypes.byref(tree._struct), address_of(data), stride), self._state)


# ---- List: nlist.h -------------------------------------------------------------------------------


class List(Saved):
    """Contacts that last: each keeps bytes of its own from one build to the next, for as long as
    the two are near (``nlist.h``, layout NLIST_COMPACT).

    Parameters
    ----------
    points : array_like, (n, 2) or (n, 3), optional
        Built at once; else by `build`.
    radius : float
        How near; with `radii` plus both radii.
    source : Grid or Tree, optional
        Finds the neighbours; built from these points. Default: one of the list's own, on the CPU a
        Grid or a Tree, by the spread of the radii and of the points (nlist_choose); `search` says
        which, and why. The pairs are the same. On a GPU a Grid.
    history : dtype_like, optional
        What each entry keeps.
    exclude : array_like of int32, (m, 2), optional
        Pairs that are not listed.
    radii : array_like, (n,), optional
    masks : array_like of uint32, (n,), optional
        Pairs are listed where their masks share a bit.
    skin : float, optional
        The list reaches that much further, so that one serves many steps, until `moved`.
    half : bool, optional
        Each pair once.
    events : bool, optional
        Builds tell which contacts began, persisted and ended.
    box, periodic
        As for `Grid`.
    stream : int or stream object, optional
        GPU: the stream to work on.
    n_threads : int
        CPU: threads that a call may use, 1 .. 256 (default: 1). The results are the same.
    **fields
        Further fields of ``nlist_desc``.

    Examples
    --------
    >>> import nearfield
    >>> contacts = nearfield.List([[0.0, 0.0], [0.9, 0.0]], 1.0, half=True, history="f8")
    >>> contacts.history[:] += 7
    >>> contacts.build([[0.0, 0.0], [0.8, 0.0]]).history
    array([7.])
    >>> contacts.pairs()
    array([[0, 1]], dtype=int32)
    """

    _header = "nlist"
    _told = "half", "history", "periodic"

    def __init__(self, points: Any = None, radius: float = 0, source: Grid | Tree | None = None,
                 history: Any = None, exclude: Any = None, *, radii: Any = None,
                 masks: Any = None, skin: float | None = None, half: bool | None = None,
                 events: bool | None = None, box: Any = None, periodic: Any = None,
                 stream: Any = None, n_threads: int | None = None,
                 **fields: Unpack[ListFields]) -> None:
        super().__init__(stream, radius=radius, radii=radii, masks=masks, skin=skin, half=half,
                         events=events, box=box, periodic=periodic, n_threads=n_threads, **fields)
        self._grid: Grid | None = None
        self._tree: Tree | None = None
        self._search = ""
        self._record = np.dtype(history) if history is not None else None
        if self._record is not None and self._record.hasobject:
            raise TypeError("history: expected a dtype of numbers, not %r" % (history,))
        self._excluded = None if exclude is None else index_pairs(exclude)
        if self._record is not None:
            self._fields["history"] = self._record.itemsize
        if points is not None:
            self.build(points, source)

    @changing
    def build(self, points: Any, source: Grid | Tree | None = None, **changes: Any) -> List:
        """Build the list again and bring the history along.

        Parameters
        ----------
        points : array_like, (n, dim)
        source : Grid or Tree, optional
        **changes
            Fields that are new from now on, such as ``radii=...`` and ``box=...``.

        Returns
        -------
        List
            This one.
        """
        self._set_keywords(changes)
        dim = width_of(points, (2, 3))
        pos, n, stride = self._rows(points, dim)
        desc = self._new_desc(dim)
        for name in ("radii", "masks"):
            self._set_array(desc, name, n)
        self._exclude(desc, n)
        if source is not None and not isinstance(source, (Grid, Tree)):
            raise TypeError("source: expected a Grid or a Tree, not %r" % (source,))
        self._search = "of the caller" if source else ""
        source = source or self._own_source(points, desc, (pos, n, stride))
        source._built()
        if (source._device, source._lib) != (self._device, self._lib):
            raise ValueError("the source must have the same precision, and live in the same place")
        self._kept["pos"] = pos
        source._search_for(lambda: self._call(
            "build_" + source._header, ctypes.byref(desc), ctypes.byref(source._struct),
            address_of(pos), stride, n))
        return self

    def _own_source(self, points: Any, desc: Any, rows: tuple[Any, int, int]) -> Grid | Tree:
        """A grid or a tree, as nlist_choose says."""
        pos, n, stride = rows
        radii = self._kept.get("radii")
        if radii is not None and self._device:
            raise ValueError("radii on the GPU need a source: a Grid, or a Tree of spheres")
        shared = ("min", "max", "periodic", "skip_invalid")
        fields: dict[str, Any] = {name: self._fields[name] for name in shared
                                  if name in self._fields}
        self._search = "grid"
        if self._device:
            if 0 < desc.radius + desc.skin < np.inf:    # else the list says what is wrong
                fields["cell"] = desc.radius + desc.skin
            return self._own_grid(points, fields)
        choice = self._lib.nlist_choice()
        if self._lib.nlist_choose(ctypes.byref(choice), ctypes.byref(desc), address_of(pos), stride,
                                  n):
            return self._own_grid(points, fields)
        self._search = ctypes.string_at(choice.reason).decode()     # "tree: why"
        if choice.search != 1:
            return self._own_grid(points, dict(fields, cell=choice.cell))
        fields = {name: fields[name] for name in ("skip_invalid",) if name in fields}
        if radii is None:
            return self._own_tree(pos, dict(fields, kind="points"))
        return self._own_tree(np.column_stack([pos, radii]), dict(fields, kind="spheres"))

    def _own_grid(self, points: Any, fields: dict[str, Any]) -> Grid:
        if self._grid is None:
            self._grid = Grid(stream=self._stream_object, n_threads=self._threads)
        self._grid._fields = fields
        return self._grid.build(points)

    def _own_tree(self, elements: Any, fields: dict[str, Any]) -> Tree:
        if self._tree is None:
            self._tree = Tree(n_threads=self._threads)
        self._tree._fields = fields
        return self._tree.build(elements)

    @property
    def search(self) -> str:
        """What found the neighbours of the last build, and why."""
        return self._search

    def _exclude(self, desc: Any, n: int) -> None:
        """Pairs become rows: each is named in the row of its first id."""
        if self._excluded is None:
            return
        self._on_host("exclude")
        self._kept["exclude"] = excluded_rows(self._excluded, n)
        desc.exclude_start, desc.exclude = (address_of(a) for a in self._kept["exclude"])

    @property
    def _generation(self) -> Any:
        self.check()    # on a GPU: fetches total, current and the counts of events
        return self._state.rows[self._state.current]

    @searching
    def rows(self) -> tuple[Array, Array]:
        """Views (offsets (n + 1,), ids (m,)): particle i has the entries
        ``ids[offsets[i]:offsets[i + 1]]``. With the field `rows` offsets are (rows + 1,)."""
        rows = self._generation
        return (self._look(rows.start, self._state.row_count + 1, np.int64),
                self._look(rows.partner, self._state.total, np.int32))

    @property
    @searching
    def history(self) -> Array:
        """View (m,) of the dtype of `history`, yours to write: what each entry keeps. All 0 when a
        contact begins."""
        if self._record is None:
            raise Error("this list was made without history=dtype")
        return self._look(self._generation.history, self._state.total, self._record, True)

    @searching
    def pairs(self) -> Array:
        """Particle and partner of each entry, int32 (m, 2), in the order of `history`."""
        self._on_host("pairs")
        pairs, needed = np.empty((self._state.total, 2), np.int32), ctypes.c_int64()
        self._call("pairs", address_of(pairs), len(pairs), ctypes.byref(needed), None, 0, None)
        return pairs

    @searching
    def shifts(self, points: Any) -> Array:
        """How many periods to add to each partner's position for the image that is listed.

        Parameters
        ----------
        points : array_like, (n, dim)
            The positions of the build.

        Returns
        -------
        ndarray of int32, (m, dim)
        """
        self._on_host("shifts")
        pos, n, stride = self._rows(points, self._state.desc.dim)
        if n != self.n:
            raise ValueError("the list has %d particles, not %d" % (self.n, n))
        refuse_not_finite("points", pos)
        total, needed = self._state.total, ctypes.c_int64()
        pairs, shifts = np.empty((total, 2), np.int32), np.zeros((total, 3), np.int32)
        self._call("pairs", address_of(pairs), total, ctypes.byref(needed), address_of(pos),
                   stride, address_of(shifts))
        return shifts[:, :self._state.desc.dim]

    @searching
    def events(self, kind: str) -> Array:
        """View (m,) of `EVENT`: the contacts that have "begun", "persisted" or "ended" with the
        last build (events=True): i, j and the entry, for "ended" that of the list before."""
        if kind not in _EVENTS:
            raise ValueError("events: expected one of %s, not %r" % (" ".join(_EVENTS), kind))
        if not self._state.desc.events:
            raise Error("this list was made without events=True")
        which = _EVENTS.index(kind)
        self.check()
        return self._look(self._state.event[which], self._state.event_count[which], EVENT)

    @searching
    def moved(self, points: Any, box: Any = None) -> bool:
        """Is it time to build again?

        Parameters
        ----------
        points : array_like, (n, dim)
        box : (lower, upper), optional
            The box as it is now, where it changes with time; the next build needs it, too:
            ``build(points, box=box)``.

        Returns
        -------
        bool
            True where anyone has moved by more than half the skin since the build, and where n has
            changed. A box that has changed along a periodic axis moves images, although no
            particle moves: what that takes of the skin is counted (nlist_moved_in; on a GPU any
            change is True).
        """
        pos, n, stride = self._rows(points, self._state.desc.dim)
        if n != self.n:
            return True
        now = self._box_now(box)
        if now is not None and self._device:
            return True
        if not self._device:
            moved = ctypes.c_int32()
            if now is None:
                self._call("moved", address_of(pos), stride, ctypes.byref(moved))
            else:
                self._call("moved_in", now.min, now.max, address_of(pos), stride,
                           ctypes.byref(moved))
            return bool(moved.value)
        self._call("moved", address_of(pos), stride)
        facts = self._lib.nlist_cuda_facts()
        fetch(self._lib, facts, self._struct.d_facts, ctypes.sizeof(facts), self._stream)
        return bool(facts.moved > 0)

    def _box_now(self, box: Any) -> Any:
        """A desc with the box as it is now, where a periodic axis is another than that of the last
        build; else None."""
        old, now = self._state.desc, self._new_desc(self._state.desc.dim)
        if box is not None:
            lower, upper = box_corners(box)
            if old.dim == 2:
                refuse_two_lengths(box)
            set_field(now, "nlist", "min", lower)
            set_field(now, "nlist", "max", upper)
        same = all((old.min[a], old.max[a]) == (now.min[a], now.max[a])
                   for a in range(old.dim) if old.periodic[a])
        return None if same else now

    @changing
    def remap(self, new_id: Any, n: int | None = None) -> List:
        """The particles were sorted, inserted or deleted: contacts and history go along.

        Parameters
        ----------
        new_id : array_like of int32, (old n,)
            What particle i is now called; -1: it is gone.
        n : int, optional
            How many there are now (default: as many as before).

        Returns
        -------
        List
            This one.
        """
        self._built()
        names = self._vector(new_id, self.n, np.int32, "new_id")
        self._call("remap", address_of(names), self.n if n is None else count_of(n))
        return self


_EVENTS = "begun", "persisted", "ended"


def excluded_rows(pairs: Any, n: int) -> tuple[Array, Array]:
    """(start (n + 1,), partners): each pair in the row of its first id."""
    pairs = index_pairs(pairs)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
        raise ValueError("exclude names a particle that is not in 0 .. %d" % (n - 1))
    counts = np.bincount(pairs[:, 0], minlength=n)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return start, np.ascontiguousarray(pairs[:, 1])


# ---- NBody: nbody.h ------------------------------------------------------------------------------


class NBody(Object):
    """Bodies in the plane, of which each acts on all others (``nbody.h``).

    Parameters
    ----------
    law : {"inverse_square", "inverse"}
        G m / d^2, or G m / d (vortices, lines of charge).
    method : {"auto", "direct", "virtual_particles", "force_nodes"}
    order : int, optional
        A higher one is more accurate.
    gravity : float, optional
        G; negative repels (default: 1).
    softening : float, optional
        A length.
    stream : int or stream object, optional
        GPU: the stream to work on.
    n_threads : int
        CPU: threads that a call may use, 1 .. 256 (default: 1). The results are the same.
    **fields
        Further fields of ``nbody_desc``.

    Examples
    --------
    >>> import numpy as np, nearfield
    >>> acc, potential = nearfield.NBody().fields([[0.0, 0.0], [2.0, 0.0]])
    >>> acc, potential
    (array([[ 0.25,  0.  ],
           [-0.25,  0.  ]]), array([-0.5, -0.5]))
    """

    _header = "nbody"
    _copied = ("acc",)
    _check_arguments = (None,)

    def __init__(self, *, law: str | None = None, method: str | None = None,
                 order: int | None = None, gravity: float | None = None,
                 softening: float | None = None, stream: Any = None, n_threads: int | None = None,
                 **fields: Unpack[NBodyFields]) -> None:
        super().__init__(stream, law=law, method=method, order=order, gravity=gravity,
                         softening=softening, n_threads=n_threads, **fields)
        for name, value in self._fields.items():    # refused here, not by the first call
            set_field(declared_desc("nbody")(), "nbody", name, value)

    def _content(self) -> Any:
        """The tree of the last bodies, None: there is none."""
        return self._bytes() if self._state.frame else None

    def _take(self, content: Any) -> None:
        if content is not None:
            self._call("load", ctypes.byref(self._new_desc(0)), content, len(content))

    def _bodies(self, pos: Any, mass: Any) -> tuple[Any, int, int, Any]:
        pos, n, stride = self._rows(pos, 2)
        mass = None if mass is None else self._vector(mass, n, self._lib.dtype, "mass")
        self._kept["pos"], self._kept["mass"] = pos, mass
        return pos, n, stride, mass

    def _other_bodies(self, name: str, *arguments: Any) -> None:
        """A call that makes another tree: accelerations of the one before are none of its."""
        self._kept.pop("acc", None)
        self._call(name, *arguments)

    @changing
    def build(self, pos: Any, mass: Any = None) -> NBody:
        """The tree alone, for `fields_at`. pos: (n, 2); mass: (n,), None is 1 each. Returns this
        object."""
        pos, n, stride, mass = self._bodies(pos, mass)
        self._other_bodies("build", ctypes.byref(self._new_desc(0)), address_of(pos), stride,
                           address_of(mass), n)
        return self

    @changing
    def fields(self, pos: Any, mass: Any = None) -> tuple[Array, Array]:
        """Accelerations and potentials at the bodies.

        Parameters
        ----------
        pos : array_like, (n, 2)
        mass : array_like, (n,), optional
            None: 1 each.

        Returns
        -------
        acc : ndarray, (n, 2)
        potential : ndarray, (n,)
        """
        pos, n, stride, mass = self._bodies(pos, mass)
        acc, potential = self._empty((n, 2), self._lib.dtype), self._empty(n, self._lib.dtype)
        self._other_bodies("fields", ctypes.byref(self._new_desc(0)), address_of(pos), stride,
                           address_of(mass), n, address_of(acc), address_of(potential))
        self._kept["acc"] = acc
        return acc, potential

    @changing
    def accelerations(self, pos: Any, mass: Any = None) -> Array:
        """acc (n, 2): half the work of `fields`."""
        pos, n, stride, mass = self._bodies(pos, mass)
        acc = self._empty((n, 2), self._lib.dtype)
        self._other_bodies("fields", ctypes.byref(self._new_desc(0)), address_of(pos), stride,
                           address_of(mass), n, address_of(acc), None)
        self._kept["acc"] = acc
        return acc

    @searching
    def fields_at(self, points: Any) -> tuple[Array, Array]:
        """(acc (m, 2), potential (m,)) at any points (m, 2), of the bodies of the last build."""
        self._built()
        at, m, stride = self._rows(points, 2)
        refuse_not_finite("points", at)
        acc, potential = self._empty((m, 2), self._lib.dtype), self._empty(m, self._lib.dtype)
        told = () if self._device else (None,)
        self._call("fields_at", address_of(at), stride, m, address_of(acc), address_of(potential),
                   *told)
        return acc, potential

    @searching
    def estimate(self, samples: int = 64, seed: int = 1) -> Any:
        """How far the last accelerations are from the direct sum, for a sample of bodies: an
        object with the fields of ``nbody_error`` (mean_share: on average, as a share of the sum of
        all terms)."""
        if "acc" not in self._kept:
            raise Error("estimate needs accelerations: call fields or accelerations first")
        error, samples = self._lib.nbody_error(), integer("samples", samples)
        acc = address_of(self._kept["acc"])
        if not self._device:
            self._call("estimate", acc, samples, seed, ctypes.byref(error))
            return error
        out = self._empty(ctypes.sizeof(error), np.uint8)
        self._call("estimate", acc, samples, seed, address_of(out))
        return type(error).from_buffer_copy(out.numpy().tobytes())

    @changing
    def step(self, pos: Any, vel: Any, dt: float, mass: Any = None, steps: int = 1,
             integrator: str = "leapfrog") -> None:
        """Move pos and vel by `steps` time steps, in place.

        Parameters
        ----------
        pos, vel : ndarray, (n, 2)
            Tightly packed, of the precision of this object.
        dt : float
        mass : array_like, (n,), optional
        steps : int
        integrator : {"leapfrog", "euler"}
        """
        place, n, stride, mass = self._bodies(pos, mass)
        speed, m, vel_stride = self._rows(vel, 2)
        self._in_place(pos, place, stride)
        self._in_place(vel, speed, vel_stride)
        if n != m:
            raise ValueError("%d positions, but %d velocities" % (n, m))
        acc = self._empty((n, 2), self._lib.dtype)
        bodies = self._lib.nbody_bodies(address_of(place),
                                        address_of(speed), address_of(acc), address_of(mass), n, 0)
        words = OPTIONS["nbody.integrator"].split()
        if integrator not in words:
            raise ValueError("integrator=%r: expected one of %s" % (integrator, " ".join(words)))
        which = words.index(integrator)
        others = set(self._others)
        for _ in range(steps):
            self._others |= others
            self._other_bodies("step", ctypes.byref(self._new_desc(0)), ctypes.byref(bodies), dt,
                               which)
            self._kept["acc"] = acc

    def _in_place(self, given: Any, used: Any, apart: int) -> None:
        """Refuses arrays that would have to be copied."""
        real = self._lib.dtype
        if (isinstance(given, (list, tuple)) or address_of(given) != address_of(used)
                or apart not in (0, 2 * real.itemsize)):
            raise ValueError("step works in place: pos and vel must be tightly packed arrays "
                             "(n, 2) of %s" % real)
        if not self._device and not given.flags.writeable:
            raise ValueError("step works in place: pos and vel must be writeable")


__all__ = ["EVENT", "Grid", "Tree", "List", "NBody"]
