"""Grid, Tree, List and NBody: an object each over ugrid.h, lbvh.h, nlist.h and nbody.h.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._arrays import (Array, address_of, count_of, fetch, flat_corners, index_pairs, pairs_of,
                      refuse_bad_queries, refuse_not_finite, set_field, size_of, width_of)
from ._binding import OPTIONS, Error, raise_for
from ._object import Object

# A contact that began, persists or ended: List.events.
EVENT = np.dtype([("i", np.int32), ("j", np.int32), ("entry", np.int64)])


# ---- Grid: ugrid.h -------------------------------------------------------------------------------


class Grid(Object):
    """Particles of about one size, or one search radius.

        grid = Grid(points, cell=0.1, box=(0, 1), periodic=True)
        offsets, ids = grid.neighbors(0.1)

    points: (n, 2) or (n, 3). cell: as a rule the largest radius you search with. box: (lower, upper) corner, each a number or one for
    each axis; else the points' own. Distances are to the nearest image on periodic axes; `<=`: a particle at the radius is within.
    """

    _header = "ugrid"

    def __init__(self, points: Any = None, cell: Any = None, **fields: Any) -> None:
        super().__init__(cell=cell, **fields)
        if points is not None:
            self.build(points)

    def build(self, points: Any) -> Any:
        """Puts other points into the cells; memory is used again."""
        pos, n, stride = self._rows(points, width_of(points, (2, 3)))
        desc = self._new_desc(dim=width_of(points, (2, 3)))
        if self._device:
            raise_for(self._lib, "ugrid", self._lib.ugrid_cuda_fit(ctypes.byref(desc), address_of(pos), stride, n, self._stream), self._state)
        self._kept["pos"] = pos         # some methods read it again
        self._call("build", ctypes.byref(desc), address_of(pos), stride, n)
        return self

    def to_host(self) -> Any:
        """GPU: a copy of this grid on the CPU, with the positions as they are now."""
        host = super().to_host()
        n, stride = self.n, self._state.stride or self.desc.dim * self._lib.dtype.itemsize
        pos = host._kept["pos"] = np.zeros((n, stride // self._lib.dtype.itemsize), self._lib.dtype)
        size = max(n - 1, 0) * stride + (n > 0) * self.desc.dim * self._lib.dtype.itemsize
        fetch(self._lib, pos.ctypes.data_as(ctypes.c_void_p), self._state.pos, size, self._stream)
        host._state.pos, host._state.stride = address_of(pos), stride
        return host

    def neighbors(self, radius: Any, half: Any = False) -> Any:
        """(offsets, ids): particle i has the neighbours ids[offsets[i]:offsets[i + 1]]. half: each pair in one of its two rows."""
        return self._list("neighbors", self.n, radius, int(half))

    def count_neighbors(self, radius: Any, half: Any = False) -> Any:
        """How many neighbours each particle has."""
        counts = self._empty(self.n, np.int32)
        self._call("count_neighbors", radius, int(half), address_of(counts))
        return counts

    def count_pairs(self, radius: Any) -> Any:
        """How many pairs there are, each counted once."""
        pairs = self._empty(1, np.int64)
        self._call("count_pairs", radius, address_of(pairs))
        return int(pairs[0])

    def pairs(self, radius: Any) -> Any:
        """The pairs themselves, (m, 2), each once and with the lower id first; in no order."""
        self._on_host("pairs")
        return pairs_of(*self.neighbors(radius, half=True))

    def query(self, points: Any, radius: Any) -> Any:
        """(offsets, ids) of the particles within radius of any points: as neighbors, for points that are not in the grid."""
        if self._lib is None:
            raise Error("Grid: nothing was built yet")
        at, m, stride = self._rows(points, self.desc.dim)
        refuse_not_finite("points", at)
        return self._list("neighbors_at", m, address_of(at), stride, m, radius)

    @property
    def order(self) -> Any:
        """View: the particles in the grid's own order, in which near ones are near in memory (SORT, COUNT)."""
        return self._look(self._state.order, self.n, np.int32)


# ---- Tree: lbvh.h -----------------------------------------------------------------------------------------------------------------


class Tree(Object):
    """Elements of any sizes: kind="boxes" (n, 2 * dim) or (n, 2, dim): lower, upper corner; "points" (n, dim); "spheres" (n, dim + 1): centre,
    radius; "triangles" (n, 3 * dim) or (n, 3, dim), or with indices=(n, 3) the vertices (v, dim).

        tree = Tree(boxes);                     pairs = tree.pairs()
        tree = Tree(points, "points");          ids, distances2 = tree.nearest(places, k=8)
        tree = Tree(corners, "triangles");      ids, t = tree.rays(origins, directions)
    """

    _header = "lbvh"

    def __init__(self, elements: Any = None, kind: Any = "boxes", **fields: Any) -> None:
        super().__init__(kind=kind, **fields)
        if elements is not None:
            self.build(elements)

    def _elements(self, elements: Any) -> Any:
        """(array, rows, stride, dim) of elements, as their kind has them."""
        kind, indexed = self._fields["kind"], self._fields.get("indices") is not None
        if kind not in OPTIONS["lbvh.kind"].split():
            raise ValueError("kind must be one of %s" % OPTIONS["lbvh.kind"])
        if np.ndim(elements) == 3 and not hasattr(elements, "__cuda_array_interface__"):
            elements = flat_corners(np.asarray(elements), 0 if indexed else {"boxes": 2, "triangles": 3}.get(kind, 0))
        widths = {"boxes": (4, 6), "points": (2, 3), "spheres": (3, 4), "triangles": (2, 3) if indexed else (6, 9)}[kind]
        width = width_of(elements, widths)
        return self._rows(elements, width) + (2 + widths.index(width),)

    def build(self, elements: Any) -> Any:
        """Builds the tree over other elements; memory is used again."""
        data, n, stride, dim = self._elements(elements)
        desc = self._new_desc(dim)
        if self._fields.get("indices") is not None:
            desc.vertices, n = n, len(self._fields["indices"])
            self._set_array(desc, "indices", n, 3)
        self._set_array(desc, "masks", n)
        self._kept["data"] = data, stride
        self._call("build", ctypes.byref(desc), address_of(data), stride, n)
        return self

    def refit(self, elements: Any) -> Any:
        """The same elements after a small motion: the hierarchy stays, the boxes follow. Faster than a build."""
        data, n, stride, dim = self._elements(elements)
        if (self.desc.vertices if self.desc.indices else self.n) != n or self.desc.dim != dim:
            raise ValueError("refit needs as many elements as the build had")
        self._call("refit", address_of(data), stride)
        self._kept["data"] = data, stride
        return self

    def count_pairs(self) -> Any:
        """How many pairs of boxes overlap, each counted once."""
        pairs = self._empty(1, np.int64)
        self._call("count_pairs", address_of(pairs))
        return int(pairs[0])

    def pairs(self) -> Any:
        """The pairs of elements whose boxes overlap, (m, 2)."""
        m = self.count_pairs()
        self.check()
        pairs, needed = self._empty((m, 2), np.int32), self._empty(1, np.int64)
        self._call("pairs", address_of(pairs), m, address_of(needed))
        return pairs

    def overlaps(self, queries: Any = None, kind: Any = "boxes", radius: Any = 0, half: Any = False) -> Any:
        """(offsets, ids): for each query the elements whose boxes it overlaps. Queries are boxes, "spheres", or "points" that reach
        `radius` far; None: the tree's own elements against the others (half: each pair in one of its two rows)."""
        if self._lib is None:
            raise Error("Tree: nothing was built yet")
        ask, rows = self._lib.lbvh_queries(), self.n
        set_field(ask, "lbvh", "kind", kind)
        ask.radius, ask.flags = radius, int(half)
        if queries is not None:
            data, rows, stride = self._rows(queries, {"boxes": 2, "points": 1, "spheres": 1}[kind] * self.desc.dim + (kind == "spheres"))
            refuse_bad_queries(data, kind)
            ask.data, ask.stride, ask.n = address_of(data), stride, rows
            if rows == 0:
                return self._empty(0, np.int64), self._empty(0, np.int32)
        return self._list("overlaps", rows, ctypes.byref(ask))

    def query(self, points: Any, radius: Any) -> Any:
        """(offsets, ids): the elements whose boxes are within radius of each point."""
        return self.overlaps(points, "points", radius)

    def nearest(self, points: Any, k: Any = 1, reach: Any = np.inf) -> Any:
        """(ids, distances2), both (m, k): the k elements nearest to each point and the squares of their distances (to their boxes), nearest
        first; -1 and infinity where there are fewer than k within reach."""
        if self._lib is None:
            raise Error("Tree: nothing was built yet")
        at, m, stride = self._rows(points, self.desc.dim)
        refuse_not_finite("points", at)
        ids, distances2 = self._empty((m, k), np.int32), self._empty((m, k), self._lib.dtype)
        found = self._empty(m, np.int32)
        if self._device:
            self._call("nearest", address_of(at), stride, m, k, reach, 0, address_of(ids), address_of(distances2), address_of(found))
        else:
            raise_for(self._lib, "lbvh", self._lib.nearfield_nearest(ctypes.byref(self._struct), address_of(at), stride, m, k, reach,
                   address_of(ids), address_of(distances2), address_of(found)), self._state)
        return ids, distances2

    def rays(self, origins: Any, directions: Any, t_max: Any = np.inf) -> Any:
        """(ids, t): the first triangle that each ray meets, from either side, and where, in lengths of its direction; none: -1, t_max."""
        self._on_host("rays")
        if not self._lib or self._fields["kind"] != "triangles" or self.desc.dim != 3:
            raise Error("rays needs a tree of triangles in 3D")
        from_, m, _ = self._rows(np.ascontiguousarray(origins, self._lib.dtype), 3)
        along, m2, _ = self._rows(np.ascontiguousarray(directions, self._lib.dtype), 3)
        if m != m2:
            raise ValueError("%d origins, but %d directions" % (m, m2))
        refuse_not_finite("origins", from_)
        refuse_not_finite("directions", along)
        if not t_max >= 0:
            raise ValueError("t_max must not be negative or NaN, but is %s" % t_max)
        ids, t, (data, stride) = np.empty(m, np.int32), np.empty(m, self._lib.dtype), self._kept["data"]
        stride = stride or data.shape[1] * data.itemsize
        raise_for(self._lib, "lbvh", self._lib.nearfield_rays(ctypes.byref(self._struct), address_of(data), stride, address_of(from_),
               address_of(along), m, t_max, address_of(ids), address_of(t)), self._state)
        return ids, t


# ---- List: nlist.h ----------------------------------------------------------------------------------------------------------------


class List(Object):
    """Contacts that last: each keeps bytes of its own from one build to the next, for as long as the two are near.

        contacts = List(points, radius=0.1, half=True, history="4f4", events=True)
        i, j = contacts.pairs().T
        contacts.history[:, 0] += 1             # one row for each pair
        contacts.build(points_after_a_step)     # history goes along

    radius: how near (with radii=(n,): plus both radii). skin: lists reach that much further, so that one serves many steps, until moved().
    history: a dtype for each entry. exclude: (m, 2) pairs that are not listed. box, periodic: as for Grid.
    The layout is NLIST_COMPACT: entries of a particle one after the other.
    """

    _header = "nlist"

    def __init__(self, points: Any = None, radius: Any = 0, source: Any = None, history: Any = None, exclude: Any = None, **fields: Any) -> None:
        super().__init__(radius=radius, **fields)
        self._grid = None
        self._record = np.dtype(history) if history is not None else None
        self._excluded = None if exclude is None else index_pairs(exclude)
        if self._record is not None:
            self._fields["history"] = self._record.itemsize
        if points is not None:
            self.build(points, source)

    def build(self, points: Any, source: Any = None, **changes: Any) -> Any:
        """Builds the list again and brings the history along. source: the Grid or Tree that finds the neighbours, built from these points
        (default: a Grid of its own). changes: fields that are new from now on, such as radii=..."""
        self._fields.update(changes)
        dim = width_of(points, (2, 3))
        pos, n, stride = self._rows(points, dim)
        desc = self._new_desc(dim)
        for name in ("radii", "masks"):
            self._set_array(desc, name, n)
        self._exclude(desc, n)
        source = source or self._own_grid(points, desc)
        if (source._device, source._lib) != (self._device, self._lib):
            raise ValueError("the source must have the same precision, and live in the same place")
        self._kept["pos"] = pos
        self._call("build_" + source._header, ctypes.byref(desc), ctypes.byref(source._struct), address_of(pos), stride, n)
        return self

    def _own_grid(self, points: Any, desc: Any) -> Any:
        radii = self._kept.get("radii")
        if radii is not None and self._device:
            raise ValueError("radii on the GPU need a source: a Grid, or a Tree of spheres")
        largest = float(radii.max()) if radii is not None and len(radii) else 0.0
        fields = {name: self._fields[name] for name in ("min", "max", "periodic") if name in self._fields}
        reach = desc.radius + desc.skin + 2 * largest
        fields["cell"] = reach if 0 < reach < np.inf else None      # the list says what is wrong
        if self._grid is None:
            self._grid = Grid(stream=self._stream_object)
        self._grid._fields = fields
        return self._grid.build(points)

    def _exclude(self, desc: Any, n: Any) -> Any:
        """Pairs become rows: each is named in the row of its first id."""
        if self._excluded is None:
            return
        self._on_host("exclude")
        pairs = self._excluded[np.argsort(self._excluded[:, 0], kind="stable")]
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
            raise ValueError("exclude names a particle that is not in 0 .. %d" % (n - 1))
        start = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))]).astype(np.int64)
        self._kept["exclude"] = start, np.ascontiguousarray(pairs[:, 1])
        desc.exclude_start, desc.exclude = (address_of(a) for a in self._kept["exclude"])

    @property
    def _generation(self) -> Any:
        self.check()    # on a GPU: fetches total, current and the counts of events
        return self._state.rows[self._state.current]

    def rows(self) -> Any:
        """Views (offsets, ids): the entries of particle i are ids[offsets[i]:offsets[i + 1]]."""
        rows = self._generation
        return self._look(rows.start, self.n + 1, np.int64), self._look(rows.partner, self._state.total, np.int32)

    @property
    def history(self) -> Any:
        """View: the bytes of each entry, as the dtype of `history`, yours to write. All 0 when a contact begins."""
        if self._record is None:
            raise Error("this list was made without history=dtype")
        return self._look(self._generation.history, self._state.total, self._record)

    def pairs(self) -> Any:
        """(m, 2): particle and partner of each entry, in the order of `history`."""
        self._on_host("pairs")
        pairs, needed = np.empty((self._state.total, 2), np.int32), ctypes.c_int64()
        self._call("pairs", address_of(pairs), len(pairs), ctypes.byref(needed), None, 0, None)
        return pairs

    def shifts(self, points: Any) -> Any:
        """(m, dim): how many periods to add to each partner's position for the image that is listed."""
        self._on_host("shifts")
        pos, n, stride = self._rows(points, self.desc.dim)
        if n != self.n:
            raise ValueError("the list has %d particles, not %d" % (self.n, n))
        refuse_not_finite("points", pos)
        pairs, shifts = np.empty((self._state.total, 2), np.int32), np.zeros((self._state.total, 3), np.int32)
        self._call("pairs", address_of(pairs), len(pairs), ctypes.byref(ctypes.c_int64()), address_of(pos), stride, address_of(shifts))
        return shifts[:, :self.desc.dim]

    def events(self, kind: Any) -> Any:
        """View: the contacts that have "begun", "persisted" or "ended" with the last build (events=True): i, j and the entry, for "ended"
        that of the list before."""
        which = ("begun", "persisted", "ended").index(kind)
        self.check()
        return self._look(self._state.event[which], self._state.event_count[which], EVENT)

    def moved(self, points: Any) -> Any:
        """Has anyone moved by more than half the skin since the build? Then it is time to build again."""
        pos, n, stride = self._rows(points, self.desc.dim)
        if n != self.n:
            return True
        if not self._device:
            moved = ctypes.c_int32()
            self._call("moved", address_of(pos), stride, ctypes.byref(moved))
            return bool(moved.value)
        self._call("moved", address_of(pos), stride)
        facts = self._lib.nlist_cuda_facts()
        fetch(self._lib, facts, self._struct.d_facts, ctypes.sizeof(facts), self._stream)
        return facts.moved > 0

    def remap(self, new_id: Any, n: Any = None) -> Any:
        """The particles were sorted, inserted or deleted: new_id[i] is what particle i is now called, -1: it is gone. n: how many there are
        now (default: as many as before). Contacts and their history go along."""
        names = self._vector(new_id, self.n, np.int32, "new_id")
        self._call("remap", address_of(names), self.n if n is None else count_of(n))
        return self

    def save(self) -> Any:
        """Bytes from which load() makes the same list: for checkpoints."""
        self._on_host("save")
        needed = ctypes.c_int64()
        self._try("save", None, 0, ctypes.byref(needed))
        data = np.empty(needed.value, np.uint8)
        self._call("save", address_of(data), len(data), ctypes.byref(needed))
        return data.tobytes()

    def load(self, data: Any, dim: Any = 3, dtype: Any = np.float64) -> Any:
        """The way back, into a list that was made with the same fields. dim, dtype: those of the list, where this one was not built yet."""
        if self._lib is None:
            self._settle(np.dtype(dtype), False)
        desc = self._new_desc(self.desc.dim or dim)
        self._call("load", ctypes.byref(desc), data, len(data))
        return self


# ---- NBody: nbody.h ---------------------------------------------------------------------------------------------------------------


class NBody(Object):
    """Bodies in the plane, of which each acts on all others: G m / d^2, or with law="inverse" G m / d (vortices, lines of charge).

        sim = NBody(order=6, softening=0.01)
        acc, potential = sim.fields(pos, mass)
        sim.estimate().mean_share               # the error, measured against the direct sum for a sample of bodies
    """

    _header = "nbody"

    def _bodies(self, pos: Any, mass: Any) -> Any:
        pos, n, stride = self._rows(pos, 2)
        mass = None if mass is None else self._vector(mass, n, self._lib.dtype, "mass")
        self._kept["pos"], self._kept["mass"] = pos, mass
        return pos, n, stride, mass

    def build(self, pos: Any, mass: Any = None) -> Any:
        """The tree alone, for fields_at. mass: None is 1 each."""
        pos, n, stride, mass = self._bodies(pos, mass)
        self._call("build", ctypes.byref(self._new_desc(0)), address_of(pos), stride, address_of(mass), n)
        return self

    def fields(self, pos: Any, mass: Any = None) -> Any:
        """(acc (n, 2), potential (n,)) at the bodies."""
        pos, n, stride, mass = self._bodies(pos, mass)
        acc, potential = self._empty((n, 2), self._lib.dtype), self._empty(n, self._lib.dtype)
        self._call("fields", ctypes.byref(self._new_desc(0)), address_of(pos), stride, address_of(mass), n, address_of(acc), address_of(potential))
        self._kept["acc"] = acc
        return acc, potential

    def accelerations(self, pos: Any, mass: Any = None) -> Any:
        """acc (n, 2): half the work of fields."""
        pos, n, stride, mass = self._bodies(pos, mass)
        acc = self._empty((n, 2), self._lib.dtype)
        self._call("fields", ctypes.byref(self._new_desc(0)), address_of(pos), stride, address_of(mass), n, address_of(acc), None)
        self._kept["acc"] = acc
        return acc

    def fields_at(self, points: Any) -> Any:
        """(acc, potential) at any points, of the bodies of the last build."""
        if self._lib is None:
            raise Error("NBody: nothing was built yet")
        at, m, stride = self._rows(points, 2)
        refuse_not_finite("points", at)
        acc, potential = self._empty((m, 2), self._lib.dtype), self._empty(m, self._lib.dtype)
        told = () if self._device else (None,)
        self._call("fields_at", address_of(at), stride, m, address_of(acc), address_of(potential), *told)
        return acc, potential

    def estimate(self, samples: Any = 64, seed: Any = 1) -> Any:
        """How far the last accelerations are from the direct sum, for a sample of bodies: an object with the fields of nbody_error
        (mean_share: on average, as a share of the sum of all terms)."""
        if "acc" not in self._kept:
            raise Error("estimate needs accelerations: call fields or accelerations first")
        error = self._lib.nbody_error()
        if not self._device:
            self._call("estimate", address_of(self._kept["acc"]), samples, seed, ctypes.byref(error))
            return error
        out = self._empty(ctypes.sizeof(error), np.uint8)
        self._call("estimate", address_of(self._kept["acc"]), samples, seed, address_of(out))
        return type(error).from_buffer_copy(out.numpy().tobytes())

    def step(self, pos: Any, vel: Any, dt: Any, mass: Any = None, steps: Any = 1, integrator: Any = "leapfrog") -> Any:
        """Moves pos and vel by `steps` time steps, in place: arrays (n, 2), tightly packed, of the precision of this object."""
        place, n, stride, mass = self._bodies(pos, mass)
        speed, m, vel_stride = self._rows(vel, 2)
        for given, used, apart in ((pos, place, stride), (vel, speed, vel_stride)):
            if isinstance(given, (list, tuple)) or address_of(given) != address_of(used) or apart not in (0, 2 * self._lib.dtype.itemsize):
                raise ValueError("step works in place: pos and vel must be tightly packed arrays (n, 2) of %s" % self._lib.dtype)
            if not self._device and not given.flags.writeable:
                raise ValueError("step works in place: pos and vel must be writeable")
        if n != m:
            raise ValueError("%d positions, but %d velocities" % (n, m))
        acc = self._kept["acc"] = self._empty((n, 2), self._lib.dtype)
        bodies = self._lib.nbody_bodies(address_of(place), address_of(speed), address_of(acc), address_of(mass), n, 0)
        which = OPTIONS["nbody.integrator"].split().index(integrator)
        others = set(self._others)
        for _ in range(steps):
            self._others |= others
            self._call("step", ctypes.byref(self._new_desc(0)), ctypes.byref(bodies), dt, which)

    _check_arguments = (None,)


